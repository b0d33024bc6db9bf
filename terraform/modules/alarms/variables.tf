variable "name" {
  description = "Prefix of the alarms' names."
  type        = string
  nullable    = false
}

variable "tags" {
  description = "Tags of the alarms."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "queues" {
  description = "Queues to watch."
  type        = set(string)
  nullable    = false

  validation {
    condition     = length(var.queues) > 0
    error_message = "queues: want at least one."
  }

  validation {
    condition     = alltrue([for q in var.queues : can(regex("^[!#-\\[\\]-~]+$", q))])
    error_message = "queues: want names of printable ASCII without quotes and backslashes, which CloudWatch gets as they are."
  }
}

variable "janitor_function_name" {
  description = "Function whose failures and absence are watched; every other alarm reads what it reports."
  type        = string
  nullable    = false
}

variable "actions" {
  description = "ARNs told when an alarm begins and ends, SNS topics for example."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.actions : startswith(arn, "arn:")])
    error_message = "actions: want ARNs."
  }
}

variable "max_dead_letters" {
  description = "Dead letters of a queue that are no alarm yet."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.max_dead_letters >= 0
    error_message = "max_dead_letters: want 0 or more."
  }
}

variable "max_oldest_ready_seconds" {
  description = "For how long the oldest task of a queue may have been due."
  type        = number
  default     = 300
  nullable    = false

  validation {
    condition     = var.max_oldest_ready_seconds > 0
    error_message = "max_oldest_ready_seconds: want more than 0."
  }
}

variable "min_live_dispatchers" {
  description = "Dispatchers that must live for each queue."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.min_live_dispatchers >= 1
    error_message = "min_live_dispatchers: want 1 or more."
  }
}
