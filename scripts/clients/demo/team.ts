import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { vaultClient } from '#api/client/client.ts'
import { resolveDataDir } from '#scripts/embedded-environment.ts'
import { readRunningConnection, toRefusal } from '#scripts/service-connection.ts'
import { Refusal } from '#shared/core/errors.ts'

const tags = {
  finance: 'Is it about money, prices or budgets?',
  people: 'Is it about hiring, pay or leave?',
  product: 'Is it about what the product does, or will do?',
  customers: 'Is it about a customer?',
}

const roles: Record<string, readonly (keyof typeof tags)[]> = {
  Leadership: ['finance', 'people', 'product', 'customers'],
  Sales: ['customers', 'product'],
  Engineering: ['product'],
}

const members = [
  { email: 'ada@example.com', first_name: 'Ada', role: 'Leadership' },
  { email: 'ben@example.com', first_name: 'Ben', role: 'Sales' },
  { email: 'cho@example.com', first_name: 'Cho', role: 'Engineering' },
]

/** What the team knows, by tag. */
const facts: [text: string, ...tags: (keyof typeof tags)[]][] = [
  ['The budget of the autumn campaign is 40,000 euro.', 'finance'],
  ['The price of the large plan rises to 79 euro in March.', 'finance', 'customers'],
  ['We hire two engineers in Lisbon this spring.', 'people'],
  ['Exports are written as Parquet from version 4 on.', 'product'],
  ['The mobile app works without a connection for a week.', 'product'],
  ['Northwind renews its contract for two years.', 'customers'],
  ['Globex asks for single sign-on before it signs.', 'customers', 'product'],
  ['The office is closed between Christmas and New Year.'],
]

/** What a classifier would not be sure of: it waits for a person. */
const doubtful: [text: string, ...tags: (keyof typeof tags)[]][] = [
  ['Globex may pay by the quarter.', 'customers', 'finance'],
  ['Cho wants to work four days a week from May on.', 'people'],
  ['The beta of the search is perhaps ready on Friday.', 'product'],
]

/** A team that was made: where to look at it, and the keys of its members. */
export type DemoTeam = {
  baseUrl: string
  adminKey: string
  org: string
  members: { email: string; role: string; key: string }[]
}

const toItems = (known: typeof facts, confidence: number) =>
  known.map(([text, ...tags]) => ({ text, tags, confidence }))

/**
 * Makes a team with roles, tags, members, facts and a review queue in the service that runs on DATA_DIR.
 * No model is asked: facts are seeded, and those with little confidence wait for review.
 *
 * @param name of the organization; a taken one is refused
 * @throws Refusal `unavailable` where no service runs, `upstream` with its own words where it refuses.
 */
export async function makeDemoTeam(name: string): Promise<DemoTeam> {
  const dataDir = resolveDataDir(process.env)
  const running = readRunningConnection(dataDir)
  if (!running) throw new Refusal('unavailable', 'No service runs here', 'Start one: npm start')
  const { baseUrl } = running
  const { admin_key: adminKey } = JSON.parse(
    readFileSync(join(dataDir, 'credentials.json'), 'utf8'),
  ) as { admin_key: string }
  const admin = vaultClient(baseUrl, adminKey)
  try {
    const { org_id: org } = await admin.call('POST /v1/orgs', {
      body: {
        name,
        processor_provider: 'openai',
        extract_model: 'gpt-5',
        classify_model: 'gpt-5-mini',
      },
    })
    const params = { orgId: org }
    for (const [label, question] of Object.entries(tags)) {
      await admin.call('POST /v1/orgs/:orgId/tags', { params, body: { label, question } })
    }
    const roleIds = new Map<string, string>()
    for (const [role, allowed] of Object.entries(roles)) {
      const body = { name: role, allowed_tags: [...allowed] }
      const { role_id: id } = await admin.call('POST /v1/orgs/:orgId/roles', { params, body })
      roleIds.set(role, id)
    }
    const made: DemoTeam['members'] = []
    for (const { role, ...person } of members) {
      const body = { ...person, role_ids: [roleIds.get(role)!] }
      await admin.call('POST /v1/orgs/:orgId/users', { params, body })
      const { memory_key: key } = await admin.call('POST /v1/orgs/:orgId/keys', {
        params,
        body: { team_member_id: person.email },
      })
      made.push({ email: person.email, role, key })
    }
    const items = [...toItems(facts, 1), ...toItems(doubtful, 0.4)]
    await admin.call('POST /v1/orgs/:orgId/memories', { params, body: { items } })
    return { baseUrl, adminKey, org, members: made }
  } catch (error) {
    throw toRefusal(error)
  }
}

/** What the command prints of a team. */
export const describeTeam = ({ baseUrl, adminKey, org, members }: DemoTeam): string =>
  [
    `  ${facts.length} facts are shared, ${doubtful.length} wait for review.`,
    '',
    ...members.map(({ email, role, key }) => `  ${email.padEnd(18)}${role.padEnd(13)}${key}`),
    '',
    `  The team in the console: ${baseUrl}/console#/orgs/${org}`,
    `  sign in with the admin key ${adminKey}`,
    '',
  ].join('\n')
