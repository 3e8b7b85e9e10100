import t from 'tap'
import { listAccountKeys } from '#shared/access/memory-keys.postgres.ts'
import { mintId } from '#shared/core/ids.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'
import { acceptDeletion } from '#shared/vault/delete/delete-memories.ts'
import { purgeAllExpired } from '#shared/vault/delete/purge-expired.ts'
import { setAccountRetention } from '#shared/vault/delete/retention.ts'
import { retireVaults } from '#shared/vault/delete/retire-vaults.postgres.ts'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { resolveCaller, insertMemories } from '#test/support/start/insert-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startService } from '#test/support/start/start-service.ts'
import { isBilled } from '#test/support/checks/observe.ts'
import { operationState } from '#test/support/checks/observe-jobs.ts'
import { makeExpiryDue } from '#test/support/checks/alter.ts'

// No workers until everything is accepted.
const { backend, base } = await startService(t, { jobs: [] })
const { query } = backend.postgres

const texts = ['We adopted a grey kitten from the shelter', 'The dentist is on Thursday at nine']

async function newVault() {
  const key = await buildKey(backend)
  const ids = await insertMemories(
    backend,
    key,
    texts.map(text => ({ text })),
  )
  const client = createTestClient(base, key)
  const post = async (path: string, body: object | string): Promise<string> => {
    const headers = {
      prefer: 'respond-async',
      ...(typeof body === 'string' && { 'content-type': 'application/x-ndjson' }),
    }
    const answer = await client.send('POST', `/v1/memory/${path}`, { body, headers })
    if (answer.status !== 202) throw new Error(`${path} answered ${answer.status}`)
    return answer.body.operation_id
  }
  return { key, ids, post, client, caller: await resolveCaller(backend, key) }
}

type Vault = Awaited<ReturnType<typeof newVault>>

const fileLine = JSON.stringify({
  content: 'A line of a file',
  role: 'user',
  timestamp: 1_700_000_000_000,
})

/** Accepts one operation of each kind. @returns its id. */
const kinds: Record<
  string,
  { billing: 'now' | 'at end' | 'never'; accept: (vault: Vault) => Promise<string> }
> = {
  ingest: {
    billing: 'now',
    accept: ({ post }) => post('ingest', { messages: [{ role: 'user', content: 'A new turn' }] }),
  },
  upload: { billing: 'at end', accept: ({ post }) => post('upload', fileLine) },
  import: {
    billing: 'at end',
    accept: async ({ post, client }) => {
      const [exported] = (await client.get('/v1/memory/export?vectors=true')).body
      return post(
        'import',
        JSON.stringify({ ...exported, id: crypto.randomUUID(), content: 'New' }),
      )
    },
  },
  transfer: {
    billing: 'at end',
    accept: async ({ post }) => post('transfer', { destination_key: await buildKey(backend) }),
  },
  graft: {
    billing: 'at end',
    accept: async ({ post }) =>
      post('graft', {
        destination_key: await buildKey(backend),
        queries: ['grey kitten from the shelter'],
      }),
  },
  'delete-ids': {
    billing: 'at end',
    accept: async ({ caller, ids }) =>
      (await acceptDeletion(backend, caller, { operation: mintId(), ids }))!.operation,
  },
  clear: {
    billing: 'never',
    accept: async ({ client }) => {
      const headers = { prefer: 'respond-async' }
      return (await client.send('DELETE', '/v1/memory', { headers })).body.operation_id
    },
  },
  retire: {
    billing: 'never',
    accept: async ({ caller }) => {
      const operation = mintId()
      const { account, keyHash, scope } = caller
      await backend.postgres.transaction(tx =>
        retireVaults(tx, backend, { operation, account, keyHash, vaults: [scope.vault] }),
      )
      return operation
    },
  },
  reembed: {
    billing: 'never',
    accept: async ({ caller }) => {
      const request = { operation: mintId(), model: 'local', dropPrevious: false, awaited: false }
      await acceptReembedding(backend, caller, request)
      return request.operation
    },
  },
  retention: {
    billing: 'never',
    accept: async ({ caller }) => {
      const operation = mintId()
      const decision = { operation, account: caller.account, days: 30 }
      await backend.postgres.transaction(tx => setAccountRetention(backend, tx, decision))
      return operation
    },
  },
  expire: {
    billing: 'never',
    accept: async ({ key, caller: { scope } }) => {
      const expiresAt = Date.now() - 1_000
      await insertMemories(backend, key, [{ text: 'Expired', expiresAt }])
      await makeExpiryDue(backend, scope.vault)
      await purgeAllExpired(backend, scope.vault)
      const { rows } = await query<{ id: string }>(
        `select id from operations where vault = $1 and kind = 'expire'`,
        [scope.vault],
      )
      return rows[0]!.id
    },
  },
}

const countBills = async (operation: string): Promise<number> =>
  (await isBilled(backend, operation)) ? 1 : 0

const lastUsed = async ({ caller: { account } }: Vault): Promise<(Date | null)[]> => {
  const page = { active: undefined, externalId: undefined, after: undefined, limit: 10 }
  return (await listAccountKeys(query, account, page)).map(({ lastUsedAt }) => lastUsedAt)
}

const stateOf = (operation: string) => operationState(backend, operation)

t.test('each kind of operation is billed when it is accepted, when it ends, or never', async t => {
  const accepted: { kind: string; vault: Vault; operation: string }[] = []
  for (const [kind, { billing, accept }] of Object.entries(kinds)) {
    const vault = await newVault()
    const operation = await accept(vault)
    accepted.push({ kind, vault, operation })
    t.equal(await countBills(operation), billing === 'now' ? 1 : 0, `${kind}: on acceptance`)
    if (billing !== 'now' && kind !== 'import') {
      t.same(await lastUsed(vault), [null], `${kind}: its acceptance does not use the key`)
    }
  }
  await startJobWorkers(backend)
  for (const { kind, vault, operation } of accepted) {
    await waitUntil(`${kind} ends`, async () => (await stateOf(operation)) === 'done')
    const { billing } = kinds[kind]!
    t.equal(await countBills(operation), billing === 'never' ? 0 : 1, `${kind}: at its end`)
    if (billing === 'never') t.same(await lastUsed(vault), [null], `${kind}: the key was not used`)
  }
})

t.test('an operation that existed before is not accepted again', async t => {
  const { caller } = await newVault()
  const request = { operation: mintId(), model: 'local', dropPrevious: false, awaited: false }
  const jobs = async () =>
    (await query(`select id from pgboss.job where data->>'operation' = $1`, [request.operation]))
      .rows.length
  await acceptReembedding(backend, caller, request)
  await waitUntil('it ends', async () => (await stateOf(request.operation)) === 'done')
  await query(`delete from pgboss.job where data->>'operation' = $1`, [request.operation])
  await acceptReembedding(backend, caller, request)
  t.equal(await jobs(), 0)
  t.equal(await stateOf(request.operation), 'done')
})
