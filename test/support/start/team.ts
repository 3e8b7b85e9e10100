import { createCredentials } from '#scripts/create-credentials.ts'
import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/core/ids.ts'
import { hashKey, maskKey } from '#shared/access/key.ts'
import { randomBase62 } from '#shared/core/ids.ts'
import {
  addSharedMemories,
  type AddResult,
  type NewSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'

export type Team = OrgVault & {
  /** Email of the owner. */
  email: string
  adminKey: string
  account: string
  /** Creates a role of the organization; `*` allows all tags. */
  defineRole(name: string, allowedTags: readonly string[]): Promise<string>
  /** Adds a member with these roles. @returns the key of the member. */
  addMember(name: string, roles?: readonly string[]): Promise<string>
  /** Replaces the roles of a member. */
  assignRoles(name: string, roles: readonly string[]): Promise<void>
}

/** Creates an organization with a new admin, directly in the tables. */
export async function buildTeam(backend: Backend, email?: string): Promise<Team> {
  const { postgres, config } = backend
  const owner = email ?? `${crypto.randomUUID()}@example.com`
  const { adminKey } = await postgres.transaction(tx =>
    createCredentials(tx, config.keyPepper, {
      email: owner,
      keyName: 'test',
      keyLifetimeDays: null,
      adminLifetimeDays: 30,
      paymentMethod: 'card',
      balance: null,
    }),
  )
  const { query } = postgres
  const [found] = (await query<{ id: string }>('select id from accounts where email = $1', [owner]))
    .rows
  const account = found!.id
  const org = mintId()
  const newVault = async (): Promise<string> => {
    const vault = mintId()
    await query('insert into vaults (id, account) values ($1, $2)', [vault, account])
    return vault
  }
  const newKey = async (user: string | null, vault: string): Promise<string> => {
    const key = `mk_org_${randomBase62(32)}`
    await query(
      `insert into memory_keys (hash, vault, account, kind, name, masked, id, org, org_user)
       values ($1, $2, $3, 'member', 'test', $4, $5, $6, $7)`,
      [hashKey(config.keyPepper, key), vault, account, maskKey(key), mintId(), org, user],
    )
    return key
  }
  const vault = await newVault()
  await query(
    `insert into orgs (id, account, vault, name, processor_provider, extract_model, classify_model)
     values ($1, $2, $3, $4, 'openai', 'large', 'small')`,
    [org, account, vault, `Team ${org}`],
  )
  await query('insert into org_instructions (org) values ($1)', [org])
  await newKey(null, await newVault())
  const roles = new Map<string, string>()
  const users = new Map<string, string>()

  const team: Team = {
    org,
    vault,
    epoch: 1,
    email: owner,
    adminKey: adminKey!,
    account,
    async defineRole(name, allowedTags) {
      const id = roles.get(name) ?? mintId()
      roles.set(name, id)
      await query(
        `insert into org_roles (id, org, name, allowed_tags) values ($1, $2, $3, $4)
         on conflict (id) do update set allowed_tags = excluded.allowed_tags`,
        [id, org, name, allowedTags],
      )
      return id
    },
    async addMember(name, roleNames = []) {
      const user = mintId()
      users.set(name, user)
      const own = await newVault()
      await query(
        'insert into org_users (id, org, vault, team_member_id) values ($1, $2, $3, $4)',
        [user, org, own, name],
      )
      await team.assignRoles(name, roleNames)
      return newKey(user, own)
    },
    async assignRoles(name, roleNames) {
      const user = users.get(name)
      await query('delete from org_user_roles where org_user = $1', [user])
      await query(
        `insert into org_user_roles (org_user, role, position)
         select $1, role, n from unnest($2::uuid[]) with ordinality as assigned(role, n)`,
        [user, roleNames.map(role => roles.get(role)!)],
      )
    },
  }
  return team
}

/** Seeds reviewed shared memories as the admin. @returns their ids in order. */
export async function seedTeamMemories(
  backend: Backend,
  team: Team,
  memories: readonly (Partial<NewSharedMemory> & { text: string })[],
): Promise<string[]> {
  const { added }: AddResult = await addSharedMemories(backend, team, {
    operation: mintId(),
    actor: team.email,
    items: memories.map(memory => ({
      tags: [],
      confidence: 1,
      author: team.email,
      reviewed: true,
      acquiredAt: Date.now(),
      ...memory,
    })),
  })
  return added.map(({ memory }) => memory.id)
}
