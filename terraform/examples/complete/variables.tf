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

variable "janitor_image" {
  description = "Image of the janitor, in ECR."
  type        = string
}

variable "signing_secret" {
  description = "ARN of the secret that holds whsec_..."
  type        = string
}

variable "prometheus_security_group_id" {
  description = "Security group of whoever reads the metrics."
  type        = string
}
