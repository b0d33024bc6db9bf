variable "image" {
  description = "Image of the dispatcher."
  type        = string
}

variable "vpc_id" {
  description = "Your VPC."
  type        = string
}

variable "subnet_ids" {
  description = "Your private subnets, with a NAT."
  type        = list(string)
}

variable "redis_password_secret" {
  description = "ARN of the secret, in Secrets Manager, that holds the password."
  type        = string
}

variable "cluster_arn" {
  description = "Your ECS cluster."
  type        = string
}

variable "execution_role_arn" {
  description = "Your execution role."
  type        = string
}

variable "task_role_arn" {
  description = "Your task role."
  type        = string
}

variable "janitor_zip" {
  description = "Zip file with the janitor as bootstrap."
  type        = string
}
