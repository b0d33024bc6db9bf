output "function_name" {
  description = "Name of the function."
  value       = aws_lambda_function.this.function_name
}

output "function_arn" {
  description = "ARN of the function."
  value       = aws_lambda_function.this.arn
}

output "security_group_id" {
  description = "Security group of the function."
  value       = aws_security_group.this.id
}

output "log_group_name" {
  description = "Where the janitor logs, its metrics included."
  value       = aws_cloudwatch_log_group.this.name
}
