import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import {
  answers,
  examples,
  sampleIds,
  type Example,
  type RecordedAnswer,
} from '#api/reference/examples.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
await startJobWorkers(backend)
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)
const admin = createTestClient(api.base, (await buildAdmin(backend)).key)
const executed = new Set<string>()

/** Real ids in the place of those the reference shows. */
const real = new Map<string, string>()
const made = (name: keyof typeof sampleIds, id: string) => real.set(sampleIds[name], id)

const filled = <T>(value: T): T => {
  if (value === undefined) return value
  let text = JSON.stringify(value)
  for (const [sample, id] of real) text = text.replaceAll(sample, id)
  return JSON.parse(text) as T
}

async function run(operation: string, client = api) {
  executed.add(operation)
  const endpoint = contractDocument.endpoints[operation]!
  const { path = {}, query = {}, headers = {}, body } = filled<Example>(examples[operation] ?? {})
  const target = endpoint.path.replaceAll(/\/:([A-Za-z]+)/g, (_, name: string) =>
    ['/', encodeURIComponent(String(path[name]))].join(''),
  )
  const search = new URLSearchParams(filledText(query))
  const answer = await client.send(endpoint.method, `${target}?${search.toString()}`, {
    body,
    headers: {
      ...filledText(headers),
      ...(endpoint.body && { 'content-type': endpoint.body.media[0]! }),
    },
  })
  const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
  const isText = type === 'application/json' || type.includes('ndjson')
  if (isText && answer.status < 300)
    recorded[operation] ??= { status: answer.status, type, body: answer.body }
  return answer
}

const recorded: Partial<Record<string, RecordedAnswer>> = {}

const filledText = (fields: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]))

t.test('the examples of a vault, in the order of a life', async t => {
  const other = await api.post('/v1/keys', { name: 'Destination' })
  made('destinationKey', other.body.key)
  const told = await run('ingest')
  made('operation', told.body.operation_id)
  t.equal(told.status, 200)
  const { body: listed } = await run('list')
  made('memory', listed.items.find(({ role }: { role: string }) => role === 'user').memory_id)
  const alone = [
    ['prepare', 'search', 'edit', 'dateSearch', 'upload', 'exportVault', 'importVault', 'warmup'],
    ['storeFile', 'listFiles', 'downloadFile', 'deleteFile'],
    ['stats', 'statsOfKey', 'transfer', 'graft', 'listOperations', 'readOperation', 'createKey'],
    [
      'listSessions',
      'profile',
      'usage',
      'putProviderKey',
      'listProviderKeys',
      'deleteProviderKey',
      'health',
      'information',
    ],
  ].flat()
  // What is kept can be read.
  await api.send('PUT', '/v1/account/policy', { body: { keep_files: true } })
  await works(t, alone)
  const lent = await run('checkout')
  made('batch', lent.body.batch_id)
  t.equal((await run('commit')).status, 200)
  const { body: keys } = await run('listKeys')
  made('memoryKey', keys.items.find(({ current }: { current: boolean }) => !current).id)
  await works(t, [
    'listAccountUsers',
    'usageReport',
    'changeKey',
    'inspect',
    'feedback',
    'feedbackOfMany',
    'deleteIds',
    'clearMemory',
  ])
  await works(t, ['remintKey', 'revokeKey', 'deleteAccountUser', 'rotateKey'])
  t.equal((await run('cancelOperation')).status, 409, 'what is done cannot be cancelled')
})

t.test('the examples of model calls', async t => {
  const client = createTestClient(api.base, await buildKey(backend))
  for (const name of ['openai', 'anthropic', 'google']) {
    await client.send('PUT', `/v1/account/provider-keys/${name}`, { body: { key: 'sk-of-theirs' } })
  }
  const { status, headers } = await run('chat', client)
  t.equal(status, 200)
  made('trace', headers.get('x-memory-trace')!)
  await works(t, ['listTraces', 'listRecalled', 'readTrace'], client)
  await works(
    t,
    ['checkProviderKey', 'models', 'responses', 'anthropicMessages', 'generateContent', 'embed'],
    client,
  )
  await works(t, ['streamGenerateContent', 'speak', 'drawImages', 'reembed'], client)
  await works(t, ['generateContentBeta', 'streamGenerateContentBeta'], client)
})

t.test('the examples of an organization, in the order of a life', async t => {
  const { body: org } = await run('createOrg', admin)
  made('org', org.org_id)
  const { body: memberKey } = await run('createMemberKey', admin)
  const { body: tag } = await run('createTag', admin)
  made('tag', tag.tag_id)
  const { body: role } = await run('createRole', admin)
  made('role', role.role_id)
  const { body: user } = await run('createUser', admin)
  made('user', user.user_id)
  const { body: listed } = await run('listMemberKeys', admin)
  t.equal(listed.keys.length, 1)
  made('memberKey', memberKey.key_id)
  const { body: seeded } = await run('seedMemories', admin)
  made('sharedMemory', seeded.items?.[0]?.mem_id ?? seeded.mem_id)
  const reads =
    'listOrgs readOrg readMemberKey listRoles listUsers listTags readInstructions listSharedMemories searchAsMember ' +
    'memoryAudit orgAudit orgUsage orgOverview reviewQueue debugPasses memoryHistory listAdminKeys orgPolicy exportOrg'
  await works(t, reads.split(' '), admin)
  const writes =
    'changeOrg changeTag changeRole changeUser assignRoles mintUserKey putInstructions ' +
    'changeSharedMemory createAdminKey putOrgPolicy redrivePipeline applyTag'
  await works(t, writes.split(' '), admin)
  t.equal((await run('readTagRun', admin)).status, 404, 'a dry run asks of no memory')
  t.equal((await run('tryText', admin)).status, 400, 'the account has no provider key')
  const { body: reviewer } = await run('createReviewer', admin)
  made('reviewer', reviewer.reviewer_id)
  await works(t, ['listReviewers', 'removeReviewer', 'putDirectory', 'readDirectory'], admin)
  const { body: token } = await run('createScimToken', admin)
  made('scimToken', token.token_id)
  await works(t, ['listScimTokens', 'removeScimToken'], admin)
  const member = createTestClient(api.base, memberKey.memory_key)
  await works(t, ['listShared', 'changeSharing'], member)
  const { status: withdrawn } = await run('withdrawShared', member)
  t.equal(withdrawn, 404, 'this member shared nothing')
  for (const operation of ['reviewMemory', 'undoReview', 'restoreMemory', 'revokeAdminKey']) {
    const { status } = await run(operation, admin)
    t.ok(status < 500 && status !== 400, `${operation}: ${status}, depending on what went before`)
  }
  const ends = 'deleteSharedMemory revokeMemberKey deleteTag deleteRole deleteUser deleteOrg'
  await works(t, ends.split(' '), admin)
})

t.test('the examples of an account: what it keeps out, and where it is told', async t => {
  const client = createTestClient(api.base, await buildKey(backend))
  const { body: webhook } = await run('createWebhook', client)
  made('webhook', webhook.id)
  const { status, body: message } = await run('testWebhook', client)
  t.equal(status, 202)
  made('delivery', message.id)
  t.equal((await run('replayWebhookDelivery', client)).status, 202)
  await works(t, ['accountPolicy', 'putAccountPolicy', 'listWebhooks', 'readWebhook'], client)
  await works(t, ['changeWebhook', 'renewWebhookSecret', 'listWebhookDeliveries'], client)
  await works(t, ['deleteWebhook', 'receiptKeys', 'accountEvents'], client)
  t.equal((await run('disconnectApplication', client)).status, 404, 'nothing has logged in')
  const leaving = createTestClient(api.base, await buildKey(backend, 'rosa@example.com'))
  const { status: erased, body: erasure } = await run('eraseAccount', leaving)
  t.equal(erased, 202)
  made('receipt', erasure.receipt_id)
  await works(t, ['readReceipt'], client)
})

t.test('the examples of the operator', async t => {
  const { key: operator } = await buildAdmin(backend, operatorEmail(backend.config))
  const client = createTestClient(api.base, operator)
  const { body: tenants } = await run('listTenants', client)
  made('account', tenants.items[0].account_id)
  await works(t, ['changeTenant', 'serviceUsage', 'listServiceOperations'], client)
  made('job', (await run('sendQueueJob', client)).body.job_id)
  await works(t, ['listQueues', 'readQueueHistory', 'listQueueJobs', 'readQueueJob'], client)
  await works(t, ['runQueueJobs'], client)
  await works(t, ['cancelQueueJobs', 'deleteQueueJobs'], client)
})

t.test('no example is left out', async t => {
  const left = Object.keys(examples).filter(operation => !executed.has(operation))
  t.same(left, [])
})

t.test('every answer that the reference shows is of these examples', async t => {
  if (process.env.ANSWERS === 'write') {
    const samples = new Map([...real].map(([sample, id]) => [id, sample]))
    writeFileSync(
      'api/reference/generated/answers.json',
      `${JSON.stringify(generalize(recorded, samples), null, 1)}\n`,
    )
  }
  t.same(new Set(Object.keys(answers)), new Set(Object.keys(recorded)))
  for (const [operation, { status, body }] of Object.entries(recorded) as [
    string,
    RecordedAnswer,
  ][]) {
    const shown = answers[operation]
    t.equal(shown?.status, status, operation)
    if (typeof body === 'object' && !Array.isArray(body))
      t.same(fieldsOf(shown?.body), fieldsOf(body), operation)
  }
})

const fieldsOf = (body: unknown): string[] => Object.keys(body as object).toSorted()

const mapValues = <T extends object>(value: T, map: (one: unknown) => unknown): T =>
  Object.fromEntries(Object.entries(value).map(([name, one]) => [name, map(one)])) as T

/** Answers with the ids of the examples, one time, and secrets and ids of no example made up. */
function generalize<T extends object>(value: T, samples: Map<string, string>): T {
  const times = [1_780_300_800_000, '2026-06-01T08:00:00.000Z'] as const
  const day = 86_400_000
  const visit = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.slice(0, 2).map(visit)
    if (typeof one === 'number') return Math.abs(one - Date.now()) < 400 * day ? times[0] : one
    if (typeof one === 'string') {
      return one
        .replaceAll(
          /[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}/g,
          id => samples.get(id) ?? sampleIds.operation,
        )
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, times[1])
        .replaceAll(/(?<=mk_(?:admin_)?)[A-Za-z0-9]{20,}/g, '4fT9sQ2bXw7LrN5cVhK8mZp3JdYgA6eU')
        .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:3000')
        .replaceAll(/\b[\da-f]{64}\b/g, '5f'.repeat(32))
    }
    if (typeof one !== 'object' || one === null) return one
    const long = Object.keys(one).length > 40
    return mapValues(long ? Object.fromEntries(Object.entries(one).slice(0, 3)) : one, visit)
  }
  return mapValues(value, visit)
}

async function works(t: Test, operations: string[], client: TestClient = api): Promise<void> {
  for (const operation of operations) {
    const { status, body } = await run(operation, client)
    t.ok(status === 200 || status === 201, `${operation}: ${status} ${JSON.stringify(body)}`)
  }
}
