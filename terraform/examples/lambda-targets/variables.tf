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

variable "account_id" {
  description = "Account of the functions."
  type        = string
}

variable "region" {
  description = "Region of the functions."
  type        = string
}
