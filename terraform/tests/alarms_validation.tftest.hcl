# No account and no network: plans only, on a mocked provider.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }
}

variables {
  name                  = "hooks"
  queues                = ["orders"]
  janitor_function_name = "hooks-janitor"
}

run "queues" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    queues = []
  }
  expect_failures = [var.queues]
}

run "actions" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    actions = ["me@example.com"]
  }
  expect_failures = [var.actions]
}

run "dead" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    max_dead_letters = -1
  }
  expect_failures = [var.max_dead_letters]
}

run "oldest" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    max_oldest_ready_seconds = 0
  }
  expect_failures = [var.max_oldest_ready_seconds]
}

run "live" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    min_live_dispatchers = 0
  }
  expect_failures = [var.min_live_dispatchers]
}

run "letters" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    queues = ["orders", "tâches"]
  }
  expect_failures = [var.queues]
}

run "quotes" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    queues = ["orders", "a\"b"]
  }
  expect_failures = [var.queues]
}

run "backslashes" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    queues = ["orders", "a\\b"]
  }
  expect_failures = [var.queues]
}
