//! A SWE-bench instance id (`pydicom__pydicom-1458`): the task's name, with its repository inside.

use crate::task::Task;

/// The task of an instance under a format's name. Runs on one repository stay together in a strict
/// split.
pub(super) fn task(format: &str, instance: &str, goal: String) -> Task {
    let mut task = Task::named(format!("{format}/{instance}"), goal);
    task.group_keys = repository(instance).map(|name| format!("repository/{name}")).into_iter().collect();
    task
}

/// `owner__name` of an instance id: what stands before the number (SWE-bench) or before the first
/// dot after the owner (SWE-smith). `None` for what is no instance id.
pub(super) fn repository(instance: &str) -> Option<&str> {
    let (owner, rest) = instance.split_once("__")?;
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if !plain(owner) || !plain(rest) {
        return None;
    }
    let numbered = rest.rsplit_once('-').filter(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
    let name = match numbered {
        Some((name, _)) => name,
        None => rest.split_once('.')?.0,
    };
    instance.get(..owner.len() + 2 + name.len())
}

#[cfg(test)]
mod tests {
    use super::repository;

    #[test]
    fn the_repository_stands_in_the_instance_id() {
        assert_eq!(repository("pydicom__pydicom-1458"), Some("pydicom__pydicom"));
        assert_eq!(repository("a-b__c.d-1"), Some("a-b__c.d"));
        assert_eq!(repository("pydantic__pydantic.acb0f10f.pr_8316"), Some("pydantic__pydantic"));
        for other in ["BabyEncryption", "../x__y-1", "__x-1", "run__final"] {
            assert_eq!(repository(other), None, "{other}");
        }
    }
}
