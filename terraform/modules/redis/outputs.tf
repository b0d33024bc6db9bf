output "url" {
  description = "URL for DISPATCHER_REDIS_URL; it holds no secret."
  value = format("rediss://%s:%d/0",
    local.serverless ? aws_elasticache_serverless_cache.this[0].endpoint[0].address : aws_elasticache_replication_group.this[0].primary_endpoint_address,
    local.port,
  )
}

output "cluster" {
  description = "Whether clients have to speak Redis Cluster."
  value       = local.serverless
}

output "port" {
  description = "Port of Redis."
  value       = local.port
}

output "security_group_id" {
  description = "Security group of Redis."
  value       = aws_security_group.this.id
}
