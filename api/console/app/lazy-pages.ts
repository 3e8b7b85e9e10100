import { lazyPage } from '#api/console/app/lazy-page.ts'

// Pages that a vault's first visit does not need.

export const Audit = lazyPage(async () => (await import('#api/console/app/org/audit.ts')).Audit)
export const Events = lazyPage(async () => (await import('#api/console/app/org/events.ts')).Events)
export const Instructions = lazyPage(
  async () => (await import('#api/console/app/org/instructions.ts')).Instructions,
)
export const Members = lazyPage(
  async () => (await import('#api/console/app/org/members.ts')).Members,
)
export const Orgs = lazyPage(async () => (await import('#api/console/app/org/orgs.ts')).Orgs)
export const Passes = lazyPage(async () => (await import('#api/console/app/org/passes.ts')).Passes)
export const Review = lazyPage(async () => (await import('#api/console/app/org/review.ts')).Review)
export const Roles = lazyPage(async () => (await import('#api/console/app/org/roles.ts')).Roles)
export const Settings = lazyPage(
  async () => (await import('#api/console/app/org/settings.ts')).Settings,
)
export const SharedMemories = lazyPage(
  async () => (await import('#api/console/app/org/shared-memories.ts')).SharedMemories,
)
export const Tags = lazyPage(async () => (await import('#api/console/app/org/tags.ts')).Tags)
export const ServiceOperations = lazyPage(
  async () => (await import('#api/console/app/service/operations.ts')).ServiceOperations,
)
export const Service = lazyPage(
  async () => (await import('#api/console/app/service/service.ts')).Service,
)
export const Tenants = lazyPage(
  async () => (await import('#api/console/app/service/tenants.ts')).Tenants,
)
export const ServiceUsage = lazyPage(
  async () => (await import('#api/console/app/service/usage.ts')).ServiceUsage,
)
export const Connect = lazyPage(
  async () => (await import('#api/console/app/vault/connect/connect.ts')).Connect,
)
export const Consolidate = lazyPage(
  async () => (await import('#api/console/app/vault/consolidate/consolidate.ts')).Consolidate,
)
export const Copy = lazyPage(async () => (await import('#api/console/app/vault/copy.ts')).Copy)
export const Account = lazyPage(
  async () => (await import('#api/console/app/vault/account/account.ts')).Account,
)
export const Webhooks = lazyPage(
  async () => (await import('#api/console/app/vault/webhooks/webhooks.ts')).Webhooks,
)
export const People = lazyPage(
  async () => (await import('#api/console/app/vault/people.ts')).People,
)
