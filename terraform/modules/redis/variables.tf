variable "name" {
  description = "Name of everything made here."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z](-?[a-z0-9]){0,27}$", var.name))
    error_message = "name: want lowercase letters, digits and single hyphens, a letter first and no hyphen last; ElastiCache takes nothing else."
  }
}

variable "tags" {
  description = "Tags of everything made here."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "vpc_id" {
  description = "VPC of Redis."
  type        = string
  nullable    = false
}

variable "subnet_ids" {
  description = "Subnets of Redis, in two zones or more."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnet_ids) >= 2
    error_message = "subnet_ids: want at least two, in different zones."
  }
}

variable "mode" {
  description = "replication_group: a primary and replicas, noeviction. serverless: sized by AWS, whose eviction policy can't be set."
  type        = string
  default     = "replication_group"
  nullable    = false

  validation {
    condition     = contains(["replication_group", "serverless"], var.mode)
    error_message = "mode: want replication_group or serverless."
  }
}

variable "engine_version" {
  description = "Version of Valkey; its first number chooses the parameters' family."
  type        = string
  default     = "8.0"
  nullable    = false

  validation {
    condition     = can(regex("^([89]|[1-9][0-9])\\.[0-9]+$", var.engine_version)) || can(regex("^7\\.2$", var.engine_version))
    error_message = "engine_version: want 7.2, 8.0 or later."
  }
}

variable "node_type" {
  description = "Node type of the replication group."
  type        = string
  default     = "cache.t4g.small"
  nullable    = false

  validation {
    condition     = startswith(var.node_type, "cache.")
    error_message = "node_type: want cache...."
  }
}

variable "nodes" {
  description = "Nodes of the replication group, the primary included."
  type        = number
  default     = 2
  nullable    = false

  validation {
    condition     = var.nodes >= 2 && var.nodes <= 6
    error_message = "nodes: want 2 to 6; a single one loses everything with itself."
  }
}

variable "snapshot_retention_days" {
  description = "How long daily snapshots are kept."
  type        = number
  default     = 7
  nullable    = false

  validation {
    condition     = var.snapshot_retention_days >= 1 && var.snapshot_retention_days <= 35
    error_message = "snapshot_retention_days: want 1 to 35."
  }
}

variable "kms_key_arn" {
  description = "Key that encrypts what is at rest; null = ElastiCache's own."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", var.kms_key_arn))
    error_message = "kms_key_arn: want the whole ARN of a key, no alias."
  }
}

variable "max_storage_gb" {
  description = "Most that serverless may hold."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = var.max_storage_gb >= 1 && var.max_storage_gb <= 5000
    error_message = "max_storage_gb: want 1 to 5000."
  }
}
