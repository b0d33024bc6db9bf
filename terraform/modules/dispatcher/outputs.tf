output "security_group_id" {
  description = "Security group of the tasks."
  value       = aws_security_group.this.id
}

output "service_name" {
  description = "Name of the ECS service."
  value       = local.service.name
}

output "cluster_arn" {
  description = "ECS cluster that the service runs in."
  value       = local.cluster_arn
}

output "task_definition_arn" {
  description = "Task definition of the newest revision."
  value       = aws_ecs_task_definition.this.arn
}

output "task_role_arn" {
  description = "Role of the dispatcher itself."
  value       = local.task_role_arn
}

output "log_group_name" {
  description = "Where the dispatchers log."
  value       = aws_cloudwatch_log_group.this.name
}

output "stop_timeout_seconds" {
  description = "How long ECS waits for a dispatcher to stop."
  value       = var.shutdown_grace_seconds + 10
}
