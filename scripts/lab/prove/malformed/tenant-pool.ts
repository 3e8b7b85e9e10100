import { pickOne, type SectionContext } from '#scripts/lab/prove/section.ts'
import { createTenants, serviceOf } from '#scripts/lab/prove/tenants/create-tenants.ts'
import type { Tenant, TenantKind } from '#scripts/lab/prove/tenants/tenant.ts'

/** Requests until new tenants are made: some have lost their keys, others have grown. */
const renewedEvery = 50_000
/** Things of one kind that tenants make, at most. */
const madeMax = 300

/** Tenants of every kind, replaced by new ones from time to time. */
export class TenantPool {
  readonly #context: SectionContext
  #tenants: Tenant[] = []
  readonly #made = new Map<string, number>()
  #generations = 0
  #requests = 0
  #renewal: Promise<void> | null = null

  constructor(context: SectionContext) {
    this.#context = context
  }

  /** @throws Error when new tenants are needed and could not be made */
  async pick(kind: TenantKind): Promise<Tenant> {
    this.#requests++
    if (this.#requests > this.#generations * renewedEvery || this.#of(kind).length === 0)
      await (this.#renewal ??= this.#renew())
    return pickOne(this.#of(kind), this.#context.random)
  }

  /** For one that has lost its key. */
  remove(tenant: Tenant): void {
    this.#tenants = this.#tenants.filter(one => one !== tenant)
  }

  noteMade(kind: string): void {
    this.#made.set(kind, (this.#made.get(kind) ?? 0) + 1)
  }

  isFull(kind: string): boolean {
    return (this.#made.get(kind) ?? 0) >= madeMax
  }

  #of(kind: TenantKind): Tenant[] {
    return this.#tenants.filter(tenant => tenant.kind === kind)
  }

  async #renew(): Promise<void> {
    try {
      this.#tenants = await createTenants(
        serviceOf(this.#context),
        `generation-${this.#generations++}`,
      )
      this.#made.clear()
    } finally {
      this.#renewal = null
    }
  }
}
