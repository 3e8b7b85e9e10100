import type { Answer, RequestOptions } from '#scripts/lab/prove/cluster.ts'
import type { SectionContext } from '#scripts/lab/prove/section.ts'
import { Tenant } from '#scripts/lab/prove/tenants/tenant.ts'

/** Memories that a vault and an organization keep to the end. */
export const memoriesKept = 10

/** The text of a kept memory; no request makes one with this text. */
export const keptText = ({ canary }: Tenant, n: number): string =>
  `${canary} keeps note ${n} about the harbour`

/** Where tenants live: a service, and the stand-in for everything outside it. */
export type TenantService = {
  send(key: string, path: string, options?: RequestOptions): Promise<Answer>
  createOwner(account: string): Promise<{ memoryKey: string; adminKey: string }>
  adminSecret: string
  origin: string
}

export const serviceOf = ({ cluster, provider }: SectionContext): TenantService => ({
  send: (key, path, options) => cluster.send(cluster.ports[0]!, key, path, options),
  createOwner: account => cluster.createOwner(account),
  adminSecret: cluster.environment.ADMIN_SECRET!,
  origin: provider.origin,
})

type TenantCounts = {
  accounts: number
  usersPerAccount: number
  membersPerOrg: number
  /** What the words of the tenants are made of: those of two calls are alike where it is. */
  words: string
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers of many operations
type Body = any
type Send = (key: string, path: string, body?: unknown) => Promise<Body>

/**
 * Accounts with users, an owner and an organization with members, and the operator of all. Each keeps something of
 * every kind.
 *
 * @param prefix of the accounts' names
 * @throws Error when one of them could not be made
 */
export async function createTenants(
  service: TenantService,
  prefix: string,
  {
    accounts = 4,
    usersPerAccount = 4,
    membersPerOrg = 2,
    words = prefix,
  }: Partial<TenantCounts> = {},
): Promise<Tenant[]> {
  const send: Send = async (key, path, body) => {
    const { status, text } = await service.send(key, path, { body })
    if (status >= 200 && status < 300) return JSON.parse(text)
    throw new Error(`${path} was answered with ${status} ${text}`)
  }
  const tenants = await Promise.all(
    Array.from({ length: accounts }, async (_, n) => {
      const account = `${prefix}-${n}`
      const { memoryKey, adminKey } = await service.createOwner(account)
      const owner = new Tenant('owner', memoryKey, account, `${words} ${n}`)
      const admin = new Tenant('admin', adminKey, account, `${words} ${n}`)
      const users = await createUsers(send, owner, usersPerAccount, `${words} ${n}`)
      await keepAccountThings(send, owner, `${service.origin}/${owner.canary}`)
      const members = await createOrganization(send, admin, membersPerOrg, `${words} ${n}`)
      const all = [owner, admin, ...users, ...members]
      // The key of an owner and the credential of an admin export the whole account.
      for (const { canary } of all) for (const one of [owner, admin]) one.mayRead.add(canary)
      await Promise.all([owner, ...users, ...members].map(tenant => fillVault(send, tenant)))
      return all
    }),
  )
  const operator = new Tenant('operator', service.adminSecret, 'operator', 'operator')
  const { items } = await send(operator.key, `/v1/operator/tenants?q=${prefix}-`)
  operator.keep('accountId', idsOf(items, 'account_id'))
  return [...tenants.flat(), operator]
}

const idsOf = (items: Body[], name: string): string[] => items.map(item => item[name] as string)

async function createUsers(
  send: Send,
  owner: Tenant,
  count: number,
  words: string,
): Promise<Tenant[]> {
  const users: Tenant[] = []
  // One after the other: the keys of accounts that are alike are in the same order.
  for (let n = 0; n < count; n++) {
    const own = await send(owner.key, '/v1/keys', { name: 'user' })
    const spare = await send(owner.key, '/v1/keys', { name: 'a second vault' })
    owner.keep('memoryKeyId', [own.id, spare.id])
    const user = new Tenant('user', own.key, owner.account, `${words} ${n}`)
    user.keep('destination', [spare.key])
    user.keep('key', [own.key])
    users.push(user)
  }
  return users
}

async function keepAccountThings(send: Send, owner: Tenant, url: string): Promise<void> {
  const events = ['key.revoked']
  const webhooks = '/v1/account/webhooks'
  const { id } = await send(owner.key, webhooks, { url, events, description: owner.canary })
  const delivery = await send(owner.key, `${webhooks}/${id}/test`, {})
  owner.keep('webhookId', [id])
  owner.keep('deliveryId', [delivery.id])
}

/** Creates an organization without a provider key. Its pipeline finds no facts, since the stand-in is no model. */
async function createOrganization(
  send: Send,
  admin: Tenant,
  memberCount: number,
  words: string,
): Promise<Tenant[]> {
  const create = (path: string, body: object): Promise<Body> => send(admin.key, path, body)
  const name = `name of ${admin.canary}`
  const { org_id: org } = await create('/v1/orgs', { name })
  const path = `/v1/orgs/${org}`
  const tag = await create(`${path}/tags`, { label: 'open', question: `Is it ${admin.canary}?` })
  const role = await create(`${path}/roles`, { name, allowed_tags: ['open'] })
  const reviewer = await create(`${path}/reviewers`, { email: `${admin.canary}@example.com` })
  const token = await create(`${path}/scim-tokens`, { description: `of ${admin.canary}` })
  const text = (_: unknown, n: number) => ({
    text: keptText(admin, n),
    tags: n % 2 ? ['open'] : [],
  })
  const items = Array.from({ length: memoriesKept }, text)
  const { items: seeded } = await create(`${path}/memories`, { items })
  admin.keep('orgId', [org])
  admin.keep('tagId', [tag.tag_id])
  admin.keep('roleId', [role.role_id])
  admin.keep('reviewerId', [reviewer.reviewer_id])
  admin.keep('tokenId', [token.token_id])
  admin.keep('memId', idsOf(seeded, 'mem_id'))
  const members: Tenant[] = []
  for (let n = 0; n < memberCount; n++) {
    const team_member_id = `member${n}@example.com`
    const key = await create(`${path}/keys`, { team_member_id })
    const role_ids = [role.role_id]
    const user = await create(`${path}/role-assignments`, { team_member_id, role_ids })
    admin.keep('keyId', [key.id])
    admin.keep('userId', [user.user_id])
    const member = new Tenant('member', key.memory_key, admin.account, `${words} ${n}`)
    member.mayRead.add(admin.canary)
    members.push(member)
  }
  return members
}

async function fillVault(send: Send, tenant: Tenant): Promise<void> {
  const { key, canary, session } = tenant
  const ingest = '/v1/memory/ingest?wait=true'
  const messages = Array.from({ length: memoriesKept }, (_, n) => ({
    role: 'user',
    content: keptText(tenant, n),
  }))
  const { operation_id: operation } = await send(key, ingest, { messages })
  const told = [{ role: 'user', content: `${canary} keeps a session about the harbour` }]
  await send(key, ingest, { messages: told, session_id: session })
  const { items } = await send(key, '/v1/memory/list?limit=200')
  tenant.keep('id', [operation])
  tenant.keep('memory', idsOf(items, 'memory_id'))
}
