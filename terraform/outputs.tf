output "redis_url" {
  description = "URL of Redis, for producers; it holds no secret."
  value       = local.redis.url
}

output "redis_security_group_id" {
  description = "Security group of Redis, for rules that let producers in; null when yours is known by its addresses only."
  value       = local.redis.security_group_id
}

output "dispatcher_security_group_id" {
  description = "Security group of the dispatchers."
  value       = module.dispatcher.security_group_id
}

output "dispatcher_task_role_arn" {
  description = "Role of the dispatchers."
  value       = module.dispatcher.task_role_arn
}

output "cluster_arn" {
  description = "ECS cluster that the service runs in."
  value       = module.dispatcher.cluster_arn
}

output "service_name" {
  description = "Name of the ECS service."
  value       = module.dispatcher.service_name
}

output "dispatcher_log_group_name" {
  description = "Where the dispatchers log."
  value       = module.dispatcher.log_group_name
}

output "stop_timeout_seconds" {
  description = "How long ECS waits for a dispatcher to stop: the grace and 10 s."
  value       = module.dispatcher.stop_timeout_seconds
}

output "janitor_function_name" {
  description = "Name of the janitor's function; null without one."
  value       = one(module.janitor[*].function_name)
}

output "alarm_names" {
  description = "Names of all alarms."
  value       = flatten(module.alarms[*].alarm_names)
}
