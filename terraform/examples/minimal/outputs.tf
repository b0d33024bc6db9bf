output "redis_url" {
  description = "URL of Redis, for producers."
  value       = module.queuehook.redis_url
}

output "redis_security_group_id" {
  description = "Security group of Redis, for rules that let producers in."
  value       = module.queuehook.redis_security_group_id
}

output "dispatcher_log_group_name" {
  description = "Where the dispatchers log."
  value       = module.queuehook.dispatcher_log_group_name
}
