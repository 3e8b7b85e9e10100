import t, { type Test } from 'tap'
import { randomUUID } from 'node:crypto'
import type { Endpoint } from '#api/contract/document.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import { modelRequests } from '#scripts/lab/prove/requests/model-requests.ts'
import { buildRequest, routes, sendersOf } from '#scripts/lab/prove/requests/requests.ts'
import { createTenants } from '#scripts/lab/prove/tenants/create-tenants.ts'
import type { Tenant } from '#scripts/lab/prove/tenants/tenant.ts'
import { startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  checkText,
  createTestService,
  furnishTenant,
  inputOf,
  type Whose,
} from '#test/support/start/tenants.ts'

/** Requests to each route by each kind of tenant: the table has up to four forms of a request. */
const rounds = 4

const provider = new ModelProvider()
const backend = await createTestBackend(t, {
  env: { ...(await provider.listen()), WEBHOOK_LOOPBACK: 'on' },
})
t.teardown(() => provider.close())
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const service = await createTestService(t, backend, { base, origin: provider.origin })

/** Accounts with the same words, so that what they are answered differs in nothing but ids and times. */
const accountOf = (name: string, words: string): Promise<Tenant[]> =>
  createTenants(service, name, { accounts: 1, usersPerAccount: 2, membersPerOrg: 1, words })
const victims = await accountOf('victim', 'victim')
const twins = await accountOf('twin', 'victim')
const strangers = await accountOf('stranger', 'stranger')
const controls = await accountOf('control', 'stranger')

const victim = tenantOf(victims, 'user')
const theirs: Whose = {
  word: victim.canary,
  session: victim.session,
  id: kind => {
    // No model has told statements here, and no browser has let an application in.
    const held = ['statementId', 'applicationId'].includes(kind) ? 'memory' : kind
    const id = victims.flatMap(one => one.all(held))[0]
    if (id === undefined) throw new Error(`no victim has a ${kind}`)
    return id
  },
}
const nobodys: Whose = {
  // The words of a question decide in which order its own memories are told.
  word: victim.canary,
  session: 'session 00000000',
  // One of each kind, as the victim's: what a tenant has brought into its vault under an id is there.
  id: kind => missing.get(kind) ?? missing.set(kind, missingId(kind)).get(kind)!,
}
const missing = new Map<string, string>()
function missingId(kind: string): string {
  if (kind === 'key' || kind === 'destination') return `mk_${randomUUID().replaceAll('-', '')}`
  return kind.endsWith('Cursor') ? 'bm90aGluZw.bm90aGluZw' : randomUUID()
}

function tenantOf(tenants: readonly Tenant[], kind: string, index = 0): Tenant {
  return tenants.filter(one => one.kind === kind)[index]!
}

/** Answered by the stand-in, or no part of the contract. */
const isBeside = ({ operation }: Endpoint): boolean =>
  operation in modelRequests || operation === 'mcp'
const isImport = ({ operation }: Endpoint): boolean => operation === 'importVault'

const policy = { method: 'PUT', body: { trace_days: 7 } }
const [sibling, twin] = [tenantOf(victims, 'user', 1), tenantOf(twins, 'user', 1)]
for (const account of [victims, twins]) {
  await service.send(tenantOf(account, 'owner').key, '/v1/account/policy', policy)
  for (const one of account) if (one !== sibling && one !== twin) await furnishTenant(service, one)
}

/** Those of organizations, and what is passed on to a model, too. The operator may see all. */
const asked = routes
  .filter(
    endpoint =>
      endpoint.auth.length > 0 &&
      !sendersOf(endpoint).includes('operator') &&
      // Who has the whole key of another vault of the account may read its numbers.
      !['statsOfKey', 'rotateKey', 'models'].includes(endpoint.operation),
  )
  // A memory that is brought under an id of another vault gets an id of its own: the last thing that is compared.
  .toSorted((one, other) => Number(isImport(one)) - Number(isImport(other)))

/** Asks as somebody. @returns the answer in bytes, what differs from one request to the next left out; and what was asked */
async function ask(
  { key, canary }: Tenant,
  endpoint: Endpoint,
  whose: Whose,
  seed: number,
): Promise<{ asked: string; text: string; bytes: string }> {
  const named: string[] = [whose.word, whose.session]
  const id = (kind: string): string => {
    const value = whose.id(kind)
    named.push(value)
    return value
  }
  const input = inputOf(service, { ...whose, id }, canary, seededRandom(seed))
  const { path, options } = buildRequest(endpoint, input)
  // What was asked before is in the log.
  await backend.callLog.settled()
  // What is stored in the background is counted by the next answers.
  const answer = await service.send(
    key,
    endpoint.operation === 'ingest' ? waiting(path) : path,
    options,
  )
  const { status, headers, text } = answer
  if (!isBeside(endpoint)) checkText(endpoint.method, path, answer)
  return {
    asked: `${options.method} ${path} ${JSON.stringify(options)}`,
    text: JSON.stringify(headers) + text,
    bytes: `${status} ${sorted(endpoint, blur(text, named))}`,
  }
}

/** A text without what was asked for, and without ids, keys, times and numbers that no two requests share. */
const blur = (text: string, named: readonly string[]): string =>
  named
    .toSorted((one, other) => other.length - one.length)
    .reduce((left, value) => left.replaceAll(value, '(it)'), text)
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '(id)')
    .replaceAll(/\bmk_[\w…]+/g, '(key)')
    .replaceAll(/whsec_[A-Za-z0-9+/=]+/g, '(secret)')
    .replaceAll(/(stranger|control|victim|twin)-0/g, '(account)')
    .replaceAll(/"\d{4}-\d\d-\d\dT[^"]+"/g, '(time)')
    .replaceAll(/just now|\d+ minutes? ago|\d{4}-\d\d-\d\d \d\d:\d\d/g, '(ago)')
    .replaceAll(/"(\w+_ms|\w+_at|\w+_bytes|score|timestamp|relevance)":[\d.]+/g, '"$1":(number)')
    .replaceAll(/"(recall|provider|total)":\d+/g, '"$1":(number)')
    // "just now" in a block has fewer tokens than "1 minute ago".
    .replaceAll(/("left_out_memories":\d+,"tokens":)\d+/g, '$1(number)')
    .replaceAll(/"(hash|created_at_us|next_cursor)":"[^"]+"/g, '"$1":(text)')

/**
 * Lines of an export, and memories that were recalled equally often, are in the order of their ids. A trace tells the
 * places of words such as "just now".
 */
const sorted = ({ operation }: Endpoint, text: string): string =>
  text
    .split(operation === 'listRecalled' ? /\W*(?=\{)/ : /\n/)
    .map(part => part.replace(/["\]},]+$/, ''))
    .filter(part => !part.startsWith('{"type":"trace"'))
    .toSorted()
    .join('\n')

const waiting = (path: string): string => `${path.split('?')[0]}?wait=true`

/** Everything of a tenant, as the tenant sees it. */
async function viewOf(tenant: Tenant): Promise<string> {
  const org = `/v1/orgs/${tenant.kept.get('orgId')?.[0]}`
  const paths = {
    admin: ['', '/export', '/keys', '/roles', '/users', '/tags', '/reviewers', '/audit'].map(
      part => org + part,
    ),
    owner: ['/v1/memory/export', '/v1/keys', '/v1/account/provider-keys', '/v1/account/webhooks'],
    user: ['/v1/memory/export', '/v1/memory/stats', '/v1/memory/list', '/v1/traces'],
    member: ['/v1/memory/export', '/v1/memory/stats', '/v1/shares'],
    operator: [],
  }[tenant.kind]
  const answers = await Promise.all(paths.map(path => service.send(tenant.key, path)))
  for (const { status, text } of answers) if (status !== 200) throw new Error(text)
  // When a key was used last, and since when a delivery fails, hangs on the clock.
  const sent = answers.map(({ text }) => text).join('\n')
  return sent.replaceAll(/"(?:last_used_at|failing_since)":(?:null|\d+|"[^"]*")/g, '')
}

const viewsOf = (tenants: readonly Tenant[]): Promise<string[]> => Promise.all(tenants.map(viewOf))

/** They tell what their caller has asked before, with the words that it searched for. */
const asksBack = new Set(['listTraces', 'readTrace', 'exportAccount'])

/** Two tenants that live alike send every request, one with ids of the victim, one with ids that nobody has. */
async function compare(
  t: Test,
  asking: Tenant,
  control: Tenant,
  untold: readonly Tenant[],
): Promise<void> {
  for (const endpoint of asked) {
    if (!sendersOf(endpoint).includes(asking.kind)) continue
    for (let seed = 1; seed <= rounds; seed++) {
      const answer = await ask(asking, endpoint, theirs, seed)
      const other = await ask(control, endpoint, nobodys, seed)
      t.equal(answer.bytes, other.bytes, answer.asked.slice(0, 300))
      for (const { canary } of untold) {
        const isAsked = asksBack.has(endpoint.operation) || answer.asked.includes(canary)
        const isEchoed = isAsked && !answer.text.includes(`${canary} keeps`)
        t.ok(
          isEchoed || !answer.text.includes(canary),
          `${answer.asked.slice(0, 300)} and ${canary}`,
        )
      }
    }
  }
}

t.test('a key minted for another user of the same account is a stranger too', async t => {
  // A view is billed.
  const [before] = await Promise.all([viewsOf([victim]), viewsOf([tenantOf(twins, 'user')])])
  await compare(t, sibling, twin, [victim])
  t.same(await viewsOf([victim]), before, 'and nothing of it has changed')
})

for (const kind of ['user', 'member', 'owner', 'admin']) {
  t.test(`a ${kind} is answered of what is another’s as of what never was`, async t => {
    const before = await viewsOf(victims)
    await compare(t, tenantOf(strangers, kind), tenantOf(controls, kind), victims)
    t.same(await viewsOf(victims), before, 'and nothing of it has changed')
  })
}
