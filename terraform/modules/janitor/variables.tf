variable "name" {
  description = "Name of everything made here."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,27}$", var.name))
    error_message = "name: want 1 to 28 lowercase letters, digits and hyphens, a letter first."
  }
}

variable "tags" {
  description = "Tags of everything made here."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "package" {
  description = "The program: an image in ECR, or a zip file that holds it under the name bootstrap, and the file's filebase64sha256, by which a new one under the old name is seen."
  type = object({
    image_uri = optional(string)
    zip_file  = optional(string)
    zip_hash  = optional(string)
  })
  nullable = false

  validation {
    condition     = (var.package.image_uri == null) != (var.package.zip_file == null)
    error_message = "package: want one of image_uri and zip_file."
  }
}

variable "architecture" {
  description = "x86_64 or arm64, as the program is."
  type        = string
  default     = "x86_64"
  nullable    = false

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "architecture: want x86_64 or arm64."
  }
}

variable "vpc_id" {
  description = "VPC of the function."
  type        = string
  nullable    = false
}

variable "subnet_ids" {
  description = "Subnets from which the function reaches Redis, and Secrets Manager with redis_password_secret; it needs nothing else."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "subnet_ids: want at least one."
  }
}

variable "role_arn" {
  description = "Role of the function; null makes one."
  type        = string
  default     = null

  validation {
    condition     = var.role_arn == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/\\S+$", var.role_arn))
    error_message = "role_arn: want the ARN of a role."
  }
}

variable "scheduler_role_arn" {
  description = "Role with which EventBridge Scheduler invokes the function; null makes one."
  type        = string
  default     = null

  validation {
    condition     = var.scheduler_role_arn == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/\\S+$", var.scheduler_role_arn))
    error_message = "scheduler_role_arn: want the ARN of a role."
  }
}

variable "redis" {
  description = "Where Redis is."
  type = object({
    url               = string
    cluster           = optional(bool, false)
    username          = optional(string)
    port              = optional(number, 6379)
    security_group_id = optional(string)
    cidr_blocks       = optional(list(string), [])
  })
  nullable = false

  validation {
    condition     = can(regex("^rediss?://[^\\s@]+$", var.redis.url))
    error_message = "redis.url: want redis:// or rediss:// without user and password."
  }

  validation {
    condition     = var.redis.port >= 1 && var.redis.port <= 65535 && floor(var.redis.port) == var.redis.port
    error_message = "redis.port: want a whole number from 1 to 65535."
  }

  validation {
    condition     = alltrue([for block in var.redis.cidr_blocks : can(cidrnetmask(block))])
    error_message = "redis.cidr_blocks: want IPv4 blocks such as 10.0.0.0/16."
  }
}

variable "redis_password" {
  description = "Password of Redis. It ends up in the function's configuration and in the state; redis_password_secret does not."
  type        = string
  default     = null
  sensitive   = true
}

variable "redis_password_secret" {
  description = "Secret of Secrets Manager that the function reads the password from: its ARN, as ECS takes it (:JSON-KEY:STAGE:VERSION may follow), and keys of your own that it is encrypted with. The subnets need a way to Secrets Manager."
  type = object({
    arn          = string
    kms_key_arns = optional(list(string), [])
  })
  default = null

  validation {
    condition     = var.redis_password_secret == null || can(regex("^arn:aws[a-z-]*:secretsmanager:[^:]+:[^:]+:secret:[^:]+(:[^:]*:[^:]*:[^:]*)?$", var.redis_password_secret.arn))
    error_message = "redis_password_secret.arn: want the ARN of a secret of Secrets Manager."
  }

  validation {
    condition     = var.redis_password_secret == null || nonsensitive(var.redis_password == null)
    error_message = "redis_password_secret: want only one of it and redis_password."
  }
}

variable "kms_key_arn" {
  description = "Key that encrypts the function's environment; null = Lambda's own."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", var.kms_key_arn))
    error_message = "kms_key_arn: want the whole ARN of a key, no alias."
  }
}

variable "queues" {
  description = "Queues to sweep; empty = every queue that a dispatcher ever served."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "schedule" {
  description = "When to sweep. Alarms and autoscaling expect once a minute."
  type        = string
  default     = "rate(1 minute)"
  nullable    = false

  validation {
    condition     = can(regex("^(rate|cron)\\(.+\\)$", var.schedule))
    error_message = "schedule: want rate(...) or cron(...)."
  }
}

variable "schedule_retries" {
  description = "How often the scheduler tries again: 0 or 1, for the next sweep comes anyway."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = contains([0, 1], var.schedule_retries)
    error_message = "schedule_retries: want 0 or 1."
  }
}

variable "timeout_seconds" {
  description = "Timeout of the function. It stops 2 s before and goes on next time."
  type        = number
  default     = 60
  nullable    = false

  validation {
    condition     = var.timeout_seconds >= 20 && var.timeout_seconds <= 900
    error_message = "timeout_seconds: want 20 to 900, since a run waits out the grace of whom it suspects (10 s)."
  }
}

variable "memory" {
  description = "MiB of the function."
  type        = number
  default     = 128
  nullable    = false

  validation {
    condition     = var.memory >= 128 && var.memory <= 10240
    error_message = "memory: want 128 to 10240."
  }
}

variable "log_retention_days" {
  description = "How long the log is kept."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days: want one of those that CloudWatch Logs offers: 1, 3, 5, 7, 14, 30, 60, 90, ..."
  }
}
