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

run "alarms" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  assert {
    condition     = length(output.alarm_names) == 5
    error_message = "five alarms for one queue"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.live_dispatchers["orders"].treat_missing_data == "breaching"
    error_message = "nobody reporting is an alarm"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.janitor_absent.treat_missing_data == "breaching"
    error_message = "a janitor that does not run is an alarm"
  }
}
