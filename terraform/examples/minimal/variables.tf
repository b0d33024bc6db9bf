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
