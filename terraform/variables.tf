variable "name" {
  description = "Name of everything made here; one for each installation in a region."
  type        = string
  default     = "queuehook"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z](-?[a-z0-9]){0,27}$", var.name))
    error_message = "name: want 1 to 28 lowercase letters, digits and single hyphens, a letter first and no hyphen last."
  }
}

variable "tags" {
  description = "Tags of everything made here."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "network" {
  description = "Your VPC. Dispatchers need a way to their targets, to ECR and to CloudWatch Logs, the janitor one to Redis, and to Secrets Manager when it reads_secret."
  type = object({
    vpc_id             = string
    subnet_ids         = list(string)
    janitor_subnet_ids = optional(list(string))
    redis_subnet_ids   = optional(list(string))
    assign_public_ip   = optional(bool, false)
  })
  nullable = false

  validation {
    condition     = length(var.network.subnet_ids) > 0
    error_message = "network.subnet_ids: want at least one."
  }
}

variable "image" {
  description = "Image of the dispatcher, with a tag other than latest, or a digest."
  type        = string
  nullable    = false
}

variable "routes" {
  description = "Queue to target: an http(s) URL, or lambda:NAME[:QUALIFIER]."
  type        = map(string)
  nullable    = false
}

variable "invoke_function_arns" {
  description = "Lambda functions that the dispatcher may invoke, unqualified; their versions and aliases are included."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.invoke_function_arns) > 0 || !anytrue([for t in values(var.routes) : startswith(t, "lambda:")]) || var.dispatcher.task_role_arn != null
    error_message = "invoke_function_arns: a route leads to a Lambda function, so list what may be invoked."
  }
}

variable "signing_secret" {
  description = "ARN of the secret or parameter that holds the Standard Webhooks secrets (whsec_...)."
  type        = string
  default     = null
}

variable "kms_key_arns" {
  description = "Keys of your own that the secrets are encrypted with."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "environment" {
  description = "More settings of the dispatcher, DISPATCHER_CONCURRENCY and the like."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "dispatcher" {
  description = "The ECS service. cluster_arn and the roles are yours when given; autoscaling needs the janitor."
  type = object({
    cpu                        = optional(number, 256)
    memory                     = optional(number, 512)
    architecture               = optional(string, "X86_64")
    desired_count              = optional(number, 2)
    shutdown_grace_seconds     = optional(number, 25)
    target_ports               = optional(set(number), [443])
    scraper_security_group_ids = optional(map(string), {})
    cluster_arn                = optional(string)
    execution_role_arn         = optional(string)
    task_role_arn              = optional(string)
    log_retention_days         = optional(number, 30)
    autoscaling = optional(object({
      min              = optional(number, 2)
      max              = number
      backlog_per_task = optional(number, 500)
      queues           = optional(list(string))
    }))
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.dispatcher.autoscaling == null || var.janitor != null
    error_message = "dispatcher.autoscaling: reads what the janitor reports, so want janitor too."
  }
}

variable "redis" {
  description = "Your Redis; null makes one. Give security_group_id (it gets rules that let us in) or cidr_blocks."
  type = object({
    url               = string
    cluster           = optional(bool, false)
    port              = optional(number, 6379)
    username          = optional(string)
    password_secret   = optional(string)
    security_group_id = optional(string)
    cidr_blocks       = optional(list(string), [])
  })
  default = null

  validation {
    condition     = var.redis == null || try((var.redis.security_group_id != null) != (length(var.redis.cidr_blocks) > 0), false)
    error_message = "redis: want one of security_group_id and cidr_blocks, to know where the network lets us out."
  }

  validation {
    condition     = try(var.redis.password_secret, null) == null || var.janitor == null || try(var.janitor.reads_secret, false) || nonsensitive(var.janitor_redis_password != null)
    error_message = "redis.password_secret: Lambda can't inject it, so want janitor.reads_secret or janitor_redis_password; or set janitor = null."
  }

  validation {
    condition     = !try(var.janitor.reads_secret, false) || can(regex("^arn:aws[a-z-]*:secretsmanager:", var.redis.password_secret))
    error_message = "redis.password_secret: janitor.reads_secret wants it to be a secret of Secrets Manager."
  }
}

variable "new_redis" {
  description = "The Redis that is made when redis is null: ElastiCache for Valkey."
  type = object({
    mode                    = optional(string, "replication_group")
    engine_version          = optional(string, "8.0")
    node_type               = optional(string, "cache.t4g.small")
    nodes                   = optional(number, 2)
    snapshot_retention_days = optional(number, 7)
    kms_key_arn             = optional(string)
    max_storage_gb          = optional(number, 10)
  })
  default  = {}
  nullable = false
}

variable "janitor" {
  description = "The Lambda function that sweeps when no dispatcher lives, and reports to CloudWatch; null = none. Give image_uri, or zip_file and zip_hash (its filebase64sha256: only so is a new zip under the old name seen). With reads_secret it reads redis.password_secret itself."
  type = object({
    image_uri          = optional(string)
    zip_file           = optional(string)
    zip_hash           = optional(string)
    architecture       = optional(string, "x86_64")
    schedule           = optional(string, "rate(1 minute)")
    schedule_retries   = optional(number, 0)
    timeout_seconds    = optional(number, 60)
    memory             = optional(number, 128)
    queues             = optional(list(string), [])
    reads_secret       = optional(bool, false)
    role_arn           = optional(string)
    scheduler_role_arn = optional(string)
    kms_key_arn        = optional(string)
    log_retention_days = optional(number, 30)
  })
  default = null
}

variable "janitor_redis_password" {
  description = "Password of your Redis for the janitor. It ends up in the function's configuration and in the state; janitor.reads_secret does without."
  type        = string
  default     = null
  sensitive   = true

  validation {
    condition     = nonsensitive(var.janitor_redis_password == null) || !try(var.janitor.reads_secret, false)
    error_message = "janitor_redis_password: want only one of it and janitor.reads_secret."
  }
}

variable "alarms" {
  description = "CloudWatch alarms, told to actions (ARNs); null = none. They need the janitor."
  type = object({
    actions                  = optional(list(string), [])
    max_dead_letters         = optional(number, 0)
    max_oldest_ready_seconds = optional(number, 300)
    min_live_dispatchers     = optional(number, 1)
  })
  default = null

  validation {
    condition     = var.alarms == null || var.janitor != null
    error_message = "alarms: they read what the janitor reports, so want janitor too."
  }
}
