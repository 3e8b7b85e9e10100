variable "host" {
  description = "Name at which clients reach the service, such as memory.example.com"
  type        = string
}

variable "admin_email" {
  description = "ADMIN_EMAIL: who may see the pages of the service"
  type        = string
}

variable "image" {
  description = "Where the image was pushed to, without its tag"
  type        = string
}

variable "chart" {
  description = "The chart: a folder, an archive, or an oci:// address"
  type        = string
  default     = "../kubernetes"
}

variable "kms_key_arn" {
  description = "Key of AWS KMS that encrypts the disk of Postgres; null takes that of the account"
  type        = string
  default     = null
}

variable "postgres_class" {
  type    = string
  default = "db.m7g.large"
}

variable "subnet_group" {
  description = "Subnets of Postgres, reachable from the cluster"
  type        = string
}

variable "security_groups" {
  type = list(string)
}

variable "atlas_project" {
  description = "Id of the Atlas project; its network must let the cluster in"
  type        = string
}

variable "atlas_region" {
  type    = string
  default = "EU_CENTRAL_1"
}

variable "atlas_tier" {
  description = "M10 is the smallest with backups to any second"
  type        = string
  default     = "M10"
}
