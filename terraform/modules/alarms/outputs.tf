output "alarm_names" {
  description = "Names of all alarms."
  value = sort(concat(
    [for a in aws_cloudwatch_metric_alarm.dead_letters : a.alarm_name],
    [for a in aws_cloudwatch_metric_alarm.oldest_ready : a.alarm_name],
    [for a in aws_cloudwatch_metric_alarm.live_dispatchers : a.alarm_name],
    [aws_cloudwatch_metric_alarm.janitor_fails.alarm_name, aws_cloudwatch_metric_alarm.janitor_absent.alarm_name],
  ))
}
