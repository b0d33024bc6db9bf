locals {
  # CloudWatch gets names in ASCII; the janitor writes a colon at the beginning as \x3a.
  dimension = { for queue in var.queues : queue => startswith(queue, ":") ? "\\x3a${substr(queue, 1, -1)}" : queue }
}

resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  for_each = local.dimension

  alarm_name          = "${var.name}-dead-letters-${each.key}"
  alarm_description   = "Tasks of ${each.key} were given up: dispatcher dead list ${each.key}"
  namespace           = "queuehook"
  metric_name         = "dead"
  dimensions          = { queue = each.value }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.max_dead_letters
  period              = 60
  evaluation_periods  = 1
  treat_missing_data  = "missing" # whether the janitor reports at all is another alarm
  alarm_actions       = var.actions
  ok_actions          = var.actions
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "oldest_ready" {
  for_each = local.dimension

  alarm_name          = "${var.name}-oldest-ready-${each.key}"
  alarm_description   = "Tasks of ${each.key} wait longer than ${var.max_oldest_ready_seconds} s: too few dispatchers, or a target that fails"
  namespace           = "queuehook"
  metric_name         = "oldest_ready_seconds"
  dimensions          = { queue = each.value }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.max_oldest_ready_seconds
  period              = 60
  evaluation_periods  = 3
  datapoints_to_alarm = 2
  treat_missing_data  = "missing"
  alarm_actions       = var.actions
  ok_actions          = var.actions
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "live_dispatchers" {
  for_each = local.dimension

  alarm_name          = "${var.name}-live-dispatchers-${each.key}"
  alarm_description   = "Fewer than ${var.min_live_dispatchers} dispatchers serve ${each.key}, or nobody knows"
  namespace           = "queuehook"
  metric_name         = "live_dispatchers"
  dimensions          = { queue = each.value }
  statistic           = "Maximum"
  comparison_operator = "LessThanThreshold"
  threshold           = var.min_live_dispatchers
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "breaching"
  alarm_actions       = var.actions
  ok_actions          = var.actions
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "janitor_fails" {
  alarm_name          = "${var.name}-janitor-fails"
  alarm_description   = "The janitor can't sweep some queue; its log says why"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = var.janitor_function_name }
  statistic           = "Sum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching" # no run is the next alarm's business
  alarm_actions       = var.actions
  ok_actions          = var.actions
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "janitor_absent" {
  alarm_name          = "${var.name}-janitor-absent"
  alarm_description   = "The janitor does not run: schedule, permission or concurrency"
  namespace           = "AWS/Lambda"
  metric_name         = "Invocations"
  dimensions          = { FunctionName = var.janitor_function_name }
  statistic           = "Sum"
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  period              = 300
  evaluation_periods  = 1
  treat_missing_data  = "breaching"
  alarm_actions       = var.actions
  ok_actions          = var.actions
  tags                = var.tags
}
