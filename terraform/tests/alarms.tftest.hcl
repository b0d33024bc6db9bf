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
    condition = alltrue(flatten([
      for alarms in [aws_cloudwatch_metric_alarm.dead_letters, aws_cloudwatch_metric_alarm.oldest_ready, aws_cloudwatch_metric_alarm.live_dispatchers] :
      [for a in alarms : a.namespace == "queuehook" && a.dimensions == tomap({ queue = "orders" }) && a.period == 60]
    ]))
    error_message = "what the janitor reports each minute"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.dead_letters["orders"].comparison_operator == "GreaterThanThreshold" && aws_cloudwatch_metric_alarm.dead_letters["orders"].threshold == 0
    error_message = "the first dead letter is an alarm"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.oldest_ready["orders"].comparison_operator == "GreaterThanThreshold" && aws_cloudwatch_metric_alarm.oldest_ready["orders"].threshold == 300
    error_message = "a task that waits too long is an alarm"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.live_dispatchers["orders"].comparison_operator == "LessThanThreshold" && aws_cloudwatch_metric_alarm.live_dispatchers["orders"].threshold == 1
    error_message = "nobody living is an alarm"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.dead_letters["orders"].treat_missing_data == "missing" && aws_cloudwatch_metric_alarm.oldest_ready["orders"].treat_missing_data == "missing"
    error_message = "a minute without a report neither raises an alarm nor ends one"
  }
  assert {
    condition     = [for a in [aws_cloudwatch_metric_alarm.janitor_fails, aws_cloudwatch_metric_alarm.janitor_absent] : "${a.namespace} ${a.metric_name} ${a.dimensions["FunctionName"]} ${a.comparison_operator} ${a.threshold}"] == ["AWS/Lambda Errors hooks-janitor GreaterThanThreshold 0", "AWS/Lambda Invocations hooks-janitor LessThanThreshold 1"]
    error_message = "what Lambda reports of the janitor"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.janitor_fails.treat_missing_data == "notBreaching"
    error_message = "no failure reported is none"
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

run "a_name_with_a_colon_first" {
  command = plan
  module {
    source = "./modules/alarms"
  }
  variables {
    queues  = [":orders"]
    actions = ["arn:aws:sns:eu-west-1:123456789012:alarms"]
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.dead_letters[":orders"].dimensions == tomap({ queue = "\\x3aorders" })
    error_message = "as the janitor writes it"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.dead_letters[":orders"].alarm_actions == toset(["arn:aws:sns:eu-west-1:123456789012:alarms"]) && aws_cloudwatch_metric_alarm.janitor_absent.ok_actions == toset(["arn:aws:sns:eu-west-1:123456789012:alarms"])
    error_message = "told to whom it was said"
  }
}
