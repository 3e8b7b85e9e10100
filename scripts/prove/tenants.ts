import { randomUUID } from 'node:crypto'
import {
  createLimit,
  Faults,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/prove/section.ts'

const accounts = 4
const usersPerAccount = 5
const memoriesPerVault = 10
const clients = 8

type Tenant = { key: string; canary: string; ids: string[] }

/** Many tenants use every way to read and change memories; no answer holds a word of another one's. */
export async function proveTenants(context: SectionContext): Promise<SectionResult> {
  const { cluster, random } = context
  const faults = new Faults()
  const tenants = await createTenants(context)
  let operations = 0
  const isOver = createLimit(context, () => operations)
  await runLoops(clients, isOver, async () => {
    const tenant = pickOne(tenants, random)
    const other = pickOne(tenants, random)
    const [path, body, method] = requestOf(tenant, other, random)
    const { text, status } = await cluster.send(pickOne(cluster.ports, random), tenant.key, path, {
      body,
      ...(method && { method }),
    })
    operations++
    // An answer may repeat what its own request asked.
    const asked = `${path} ${JSON.stringify(body)}`
    for (const { canary } of tenants) {
      if (canary === tenant.canary || asked.includes(canary) || !text.includes(canary)) continue
      faults.add(
        `${method ?? ''} ${path} (${status}) holds a word of another tenant: ${text.slice(0, 200)}`,
      )
    }
  })
  await cluster.settle(60_000)
  const missing = await countMissing(context, tenants, faults)
  return {
    figures: [
      { name: 'tenants', value: tenants.length },
      { name: 'operations', value: operations },
      { name: 'answers with a foreign word', value: faults.count - missing, most: 0 },
      { name: 'memories changed or deleted by another tenant', value: missing, most: 0 },
    ],
    faults: faults.first,
  }
}

async function createTenants({ cluster }: SectionContext): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  const port = cluster.ports[0]!
  for (let account = 0; account < accounts; account++) {
    const owner = await cluster.createAccount(`tenant-${account}`)
    for (let user = 0; user < usersPerAccount; user++) {
      const { text } = await cluster.send(port, owner, '/v1/keys', {
        body: { name: `user ${user}` },
      })
      const { key } = JSON.parse(text) as { key: string }
      tenants.push({ key, canary: `canary${randomUUID().slice(0, 8)}`, ids: [] })
    }
  }
  await Promise.all(
    tenants.map(({ key, canary }) =>
      cluster.send(port, key, '/v1/memory/ingest?wait=true', {
        body: {
          messages: Array.from({ length: memoriesPerVault }, (_, n) => ({
            role: 'user',
            content: `${canary} keeps note ${n} about the harbour`,
          })),
        },
      }),
    ),
  )
  for (const tenant of tenants) tenant.ids = await listIds(tenant)
  return tenants

  async function listIds({ key }: Tenant): Promise<string[]> {
    const { text } = await cluster.send(port, key, '/v1/memory/list?limit=200')
    return (JSON.parse(text) as { items: { id: string }[] }).items.map(({ id }) => id)
  }
}

type Sent = [path: string, body?: unknown, method?: string]

/** What a tenant does; half of the times it names what is another one's. */
function requestOf(tenant: Tenant, other: Tenant, random: () => number): Sent {
  const id = pickOne(other === tenant ? [randomUUID()] : other.ids, random) ?? randomUUID()
  const requests: (() => Sent)[] = [
    () => ['/v1/memory/search', { query: 'notes about the harbour', limit: 50 }],
    () => ['/v1/memory/search', { query: `${other.canary} harbour`, limit: 50 }],
    () => [
      '/v1/memory/prepare',
      { messages: [{ role: 'user', content: 'Which notes are about the harbour?' }] },
    ],
    () => ['/v1/memory/date-search', { from: '2020-01-01', to: '2100-01-01' }],
    () => ['/v1/memory/list?limit=200'],
    () => ['/v1/memory/list?search=harbour'],
    () => ['/v1/memory/sessions'],
    () => ['/v1/memory/stats'],
    () => ['/v1/memory/export'],
    () => ['/v1/memory/profile'],
    () => ['/v1/memory/edit', { memory_id: id, text: `${tenant.canary} was here` }],
    () => ['/v1/memory/delete-ids', { ids: [id] }],
    () => [`/v1/memory/${other.key}/stats`],
    () => [`/v1/operations/${id}`],
    () => ['/v1/operations'],
    () => ['/v1/keys'],
    () => [`/v1/keys/${other.key}`, undefined, 'DELETE'],
    () => ['/v1/memory/transfer', { from: other.key, to: tenant.key }],
    () => ['/v1/usage'],
  ]
  return pickOne(requests, random)()
}

/** Memories of tenants that are no longer as they were stored. */
async function countMissing(
  { cluster }: SectionContext,
  tenants: readonly Tenant[],
  faults: Faults,
): Promise<number> {
  let missing = 0
  for (const { key, canary } of tenants) {
    const { text } = await cluster.send(cluster.ports[0]!, key, '/v1/memory/export')
    const kept = text.split('\n').filter(line => line.includes(canary)).length
    if (kept === memoriesPerVault) continue
    missing += memoriesPerVault - kept
    faults.add(`${kept} of ${memoriesPerVault} memories of ${canary} are left`)
  }
  return missing
}
