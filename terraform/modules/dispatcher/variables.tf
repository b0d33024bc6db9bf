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

variable "image" {
  description = "Image of the dispatcher. Permission to pull is given for exactly this repository when it is in ECR."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^\\S+(:[^:/\\s]+|@sha256:[0-9a-f]{64})$", var.image)) && !endswith(var.image, ":latest")
    error_message = "image: want a tag other than latest, or a digest; tasks that start later must run the same program."
  }
}

variable "vpc_id" {
  description = "VPC of the tasks."
  type        = string
  nullable    = false
}

variable "subnet_ids" {
  description = "Subnets of the tasks, with a way to the targets, to ECR and to CloudWatch Logs."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "subnet_ids: want at least one."
  }
}

variable "assign_public_ip" {
  description = "Whether tasks get public addresses: for public subnets without NAT."
  type        = bool
  default     = false
  nullable    = false
}

variable "cluster_arn" {
  description = "ECS cluster to run in; null makes one."
  type        = string
  default     = null

  validation {
    condition     = var.cluster_arn == null || can(regex("^arn:aws[a-z-]*:ecs:[a-z0-9-]+:[0-9]{12}:cluster/[A-Za-z0-9_-]+$", var.cluster_arn))
    error_message = "cluster_arn: want the ARN of an ECS cluster."
  }
}

variable "execution_role_arn" {
  description = "Role with which ECS pulls the image, reads the secrets and writes the log; null makes one."
  type        = string
  default     = null

  validation {
    condition     = var.execution_role_arn == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/\\S+$", var.execution_role_arn))
    error_message = "execution_role_arn: want the ARN of a role."
  }
}

variable "task_role_arn" {
  description = "Role of the dispatcher itself; null makes one that may invoke invoke_function_arns and nothing else."
  type        = string
  default     = null

  validation {
    condition     = var.task_role_arn == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/\\S+$", var.task_role_arn))
    error_message = "task_role_arn: want the ARN of a role."
  }
}

variable "routes" {
  description = "Queue to target: an http(s) URL, or lambda:NAME[:QUALIFIER]."
  type        = map(string)
  nullable    = false

  validation {
    condition     = length(var.routes) > 0 && alltrue([for q in keys(var.routes) : can(regex("^[^\\s,=]{1,200}$", q))])
    error_message = "routes: want at least one; a queue's name has 1 to 200 characters, no spaces, commas or equals signs."
  }

  validation {
    condition     = alltrue([for t in values(var.routes) : can(regex("^(https?://|lambda:)\\S+$", t))])
    error_message = "routes: want http://..., https://... or lambda:... as targets, without spaces."
  }
}

variable "invoke_function_arns" {
  description = "Lambda functions that the dispatcher may invoke, unqualified; their versions and aliases are included."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([
      for arn in var.invoke_function_arns : can(regex("^arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]+$", arn))
    ])
    error_message = "invoke_function_arns: want whole ARNs of functions, without version, alias or wildcard."
  }
}

variable "redis" {
  description = "Where Redis is. password_secret is read by ECS, from Secrets Manager or a parameter, by its ARN."
  type = object({
    url               = string
    cluster           = optional(bool, false)
    username          = optional(string)
    password_secret   = optional(string)
    port              = optional(number, 6379)
    security_group_id = optional(string)
    cidr_blocks       = optional(list(string), [])
  })
  nullable = false

  validation {
    condition     = can(regex("^rediss?://[^\\s@]+$", var.redis.url))
    error_message = "redis.url: want redis:// or rediss:// without user and password, which belong into username and password_secret."
  }

  validation {
    condition     = var.redis.password_secret == null || can(regex("^arn:aws[a-z-]*:(secretsmanager|ssm):", var.redis.password_secret))
    error_message = "redis.password_secret: want the ARN of a secret or of a parameter."
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

variable "signing_secret" {
  description = "ARN of the secret or parameter that holds the Standard Webhooks secrets (whsec_...)."
  type        = string
  default     = null

  validation {
    condition     = var.signing_secret == null || can(regex("^arn:aws[a-z-]*:(secretsmanager|ssm):", var.signing_secret))
    error_message = "signing_secret: want the ARN of a secret or of a parameter."
  }
}

variable "kms_key_arns" {
  description = "Keys of your own that the secrets are encrypted with."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.kms_key_arns : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", arn))])
    error_message = "kms_key_arns: want whole ARNs of keys, no aliases or wildcards."
  }
}

variable "environment" {
  description = "More settings, DISPATCHER_CONCURRENCY and the like."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([
      for name in keys(var.environment) :
      can(regex("^(DISPATCHER_[A-Z_]+|HTTPS?_PROXY|NO_PROXY|SSL_CERT_FILE|GOMEMLIMIT|AWS_[A-Z_]+)$", name))
    ])
    error_message = "environment: want DISPATCHER_* or one of HTTP_PROXY, HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE, GOMEMLIMIT, AWS_*."
  }

  validation {
    condition = length(setintersection(keys(var.environment), [
      "DISPATCHER_ROUTES", "DISPATCHER_REDIS_URL", "DISPATCHER_REDIS_CLUSTER", "DISPATCHER_REDIS_USERNAME",
      "DISPATCHER_REDIS_PASSWORD", "DISPATCHER_SIGNING_SECRET", "DISPATCHER_SHUTDOWN_GRACE", "DISPATCHER_ADMIN_ADDR",
    ])) == 0
    error_message = "environment: routes, Redis, signing secret, shutdown grace and admin address have variables of their own."
  }
}

variable "shutdown_grace_seconds" {
  description = "How long attempts in flight may take after a stop. ECS waits 10 s longer before it kills."
  type        = number
  default     = 25
  nullable    = false

  validation {
    condition     = var.shutdown_grace_seconds >= 1 && var.shutdown_grace_seconds <= 110 && floor(var.shutdown_grace_seconds) == var.shutdown_grace_seconds
    error_message = "shutdown_grace_seconds: want a whole number from 1 to 110, since Fargate kills after 120 s."
  }
}

variable "cpu" {
  description = "CPU units of a task, 1024 = one CPU."
  type        = number
  default     = 256
  nullable    = false

  validation {
    condition     = contains([256, 512, 1024, 2048, 4096], var.cpu)
    error_message = "cpu: want 256, 512, 1024, 2048 or 4096."
  }
}

variable "memory" {
  description = "MiB of a task. GOMEMLIMIT is set to 90 % of it."
  type        = number
  default     = 512
  nullable    = false

  validation {
    condition     = var.memory >= 2 * var.cpu && var.memory <= min(8 * var.cpu, 30720) && (var.memory % 1024 == 0 || var.memory == 512)
    error_message = "memory: Fargate wants 2 to 8 MiB for each CPU unit, at most 30720: 512 or a multiple of 1024."
  }
}

variable "architecture" {
  description = "X86_64 or ARM64, as the image is."
  type        = string
  default     = "X86_64"
  nullable    = false

  validation {
    condition     = contains(["X86_64", "ARM64"], var.architecture)
    error_message = "architecture: want X86_64 or ARM64."
  }
}

variable "desired_count" {
  description = "Tasks, while autoscaling says nothing else. Two survive the loss of a zone."
  type        = number
  default     = 2
  nullable    = false

  validation {
    condition     = var.desired_count >= 0 && floor(var.desired_count) == var.desired_count
    error_message = "desired_count: want a whole number, 0 or more."
  }
}

variable "autoscaling" {
  description = "Scale on ready tasks per dispatcher, as the janitor reports them; so it needs the janitor. null = none."
  type = object({
    min              = optional(number, 2)
    max              = number
    backlog_per_task = optional(number, 500)
    queues           = optional(list(string))
  })
  default = null

  validation {
    condition     = var.autoscaling == null || try(var.autoscaling.min >= 1 && var.autoscaling.max >= var.autoscaling.min, false)
    error_message = "autoscaling: want 1 <= min <= max."
  }

  validation {
    condition     = var.autoscaling == null || try(var.autoscaling.backlog_per_task > 0, false)
    error_message = "autoscaling.backlog_per_task: want more than 0."
  }

  validation {
    condition = (
      var.autoscaling == null || try(length(coalesce(var.autoscaling.queues, keys(var.routes))), 0) <= 8
      && length(setsubtract(try(coalesce(var.autoscaling.queues, []), []), keys(var.routes))) == 0
    )
    error_message = "autoscaling.queues: want at most 8, each with a route; CloudWatch adds up no more in a scaling policy."
  }

  validation {
    condition     = var.autoscaling == null || alltrue([for q in try(coalesce(var.autoscaling.queues, keys(var.routes)), []) : can(regex("^[!#-\\[\\]-~]+$", q))])
    error_message = "autoscaling.queues: want names of printable ASCII without quotes and backslashes, which CloudWatch gets as they are."
  }
}

variable "target_ports" {
  description = "TCP ports of the targets that tasks may connect to; 443 also serves ECR, logs and Lambda."
  type        = set(number)
  default     = [443]
  nullable    = false

  validation {
    condition     = alltrue([for p in var.target_ports : p >= 1 && p <= 65535])
    error_message = "target_ports: want 1 to 65535."
  }
}

variable "scraper_security_group_ids" {
  description = "Security groups that may read /metrics on port 8080."
  type        = map(string)
  default     = {}
  nullable    = false
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
