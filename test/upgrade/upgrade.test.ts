import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t, { type Test } from 'tap'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { version } from '#api/edge/version.ts'
import { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import { modelRequests } from '#scripts/lab/prove/requests/model-requests.ts'
import { buildRequest, sendersOf } from '#scripts/lab/prove/requests/requests.ts'
import { createTenants } from '#scripts/lab/prove/tenants/create-tenants.ts'
import type { Tenant } from '#scripts/lab/prove/tenants/tenant.ts'
import { release } from '#scripts/release.ts'
import type { Backend } from '#shared/backend.ts'
import { createLog } from '#shared/core/log.ts'
import { migrate } from '#shared/storage/postgres/migrate.ts'
import { startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import {
  checkText,
  createTestService,
  furnishTenant,
  inputOf,
  type ServiceAnswer,
  type TestService,
} from '#test/support/start/tenants.ts'
import { skipTimersOfPostgres } from '#test/support/doubles/moved-clock.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import {
  readReleaseFacts,
  readStatements,
  restoreDump,
  writeDump,
  type ReleasedRequest,
} from '#test/upgrade/release-dump.ts'

/** Reads that a dump of any age answers: traces end after 7 days, histories of shared memories after 30. */
const isLasting = ({ method, operation, path }: Endpoint): boolean =>
  (method === 'GET' || operation === 'search' || operation === 'dateSearch') &&
  !(operation in modelRequests) &&
  !path.startsWith('/v1/traces') &&
  operation !== 'memoryHistory'

if (process.env.RELEASE_DUMP) {
  t.test('the dump of the release is written', async t => {
    const provider = new ModelProvider()
    const env = { ...(await provider.listen()), WEBHOOK_LOOPBACK: 'on' }
    t.teardown(() => provider.close())
    const config = await createTestConfig(t, env)
    const serve = async (t: Test): Promise<[Backend, TestService]> => {
      const backend = await createTestBackend(t, { config })
      const { base } = await startTestApi(t, backend)
      return [backend, await createTestService(t, backend, { base, origin: provider.origin })]
    }
    const tenants: Tenant[] = []
    await t.test('tenants make data of every kind', async t => {
      const [backend, service] = await serve(t)
      await startJobWorkers(backend)
      const counts = { accounts: 1, usersPerAccount: 1, membersPerOrg: 1 }
      tenants.push(...(await createTenants(service, 'release', counts)))
      for (const tenant of tenants) await furnishTenant(service, tenant)
      const { key } = tenants.find(({ kind }) => kind === 'owner')!
      const body = { key: 'sk-of-the-release' }
      const path = '/v1/account/provider-keys/openai'
      t.equal((await service.send(key, path, { method: 'PUT', body })).status, 200)
      await waitUntilIdle(backend)
    })
    // Without workers.
    const [, reader] = await serve(t)
    const requests = await readEverything(reader, tenants)
    const { key, canary } = tenants.find(({ kind }) => kind === 'user')!
    const pending = { key, text: `${canary} waits for the upgrade` }
    const body = { messages: [{ role: 'user', content: pending.text }] }
    t.equal((await reader.send(key, '/v1/memory/ingest', { body })).status, 202)
    await writeDump(config, { version, requests, pending })
  })
} else {
  t.test('the dump names no table of a day: restored on another, there is none', async t => {
    t.same(
      readStatements().filter(line => /_\d{8}\b/.test(line)),
      [],
    )
  })

  const skip = skipTimersOfPostgres
  t.test(
    'a migration that waits for one table holds no other: requests go on',
    { skip },
    async t => {
      const config = await createTestConfig(t)
      await restoreDump(config)
      const connect = async (): Promise<pg.Client> => {
        const client = new pg.Client({ connectionString: config.databaseUrl })
        await client.connect()
        t.teardown(() => client.end())
        return client
      }
      const [reader, other, watch] = [await connect(), await connect(), await connect()]
      // The first migration changes memory_keys and then accounts, which a long read holds.
      await reader.query('begin')
      await reader.query('select 1 from accounts')
      const migrated = migrate(config.databaseUrl)
      const isWaiting = async (): Promise<boolean> => {
        const { rows } = await watch.query(
          `select 1 from pg_locks where not granted and relation = 'accounts'::regclass`,
        )
        return rows.length > 0
      }
      await waitUntil('the migration waits', isWaiting)
      t.ok(
        (await other.query('select 1 from memory_keys')).rows.length > 0,
        'before the read has ended',
      )
      await reader.query('commit')
      t.ok((await migrated).includes('0002-client-keys-and-budgets'))
    },
  )

  t.test('data of the release is read after the upgrade, and its waiting work is done', async t => {
    const config = await createTestConfig(t)
    await restoreDump(config)
    await release(config, createLog('silent', 'test'))
    const backend = await createTestBackend(t, { config })
    const { base } = await startTestApi(t, backend)
    const service = await createTestService(t, backend, { base, origin: base })
    const { requests, pending } = readReleaseFacts()
    for (const { key, status, texts, ...request } of requests) {
      const name = `${request.method} ${request.path}`
      const answer = await service.send(key, request.path, request)
      t.equal(answer.status, status, `${name} ${answer.text}`)
      checkText(request.method, request.path, answer)
      // A search of a later version may find more memories of the same words.
      if (texts) t.same(new Set(textsOf(answer)), new Set(texts), name)
    }
    await startJobWorkers(backend)
    const body = { query: pending.text, limit: 1 }
    const isStored = async (): Promise<boolean> => {
      const found = await service.send(pending.key, '/v1/memory/search', { body })
      return textsOf(found)[0] === pending.text
    }
    await waitUntil('the accepted exchange is stored', isStored)
  })
}

/** Sends each request that reads, as each tenant that may. */
async function readEverything(
  service: TestService,
  tenants: readonly Tenant[],
): Promise<ReleasedRequest[]> {
  const requests: ReleasedRequest[] = []
  for (const tenant of tenants) {
    for (const endpoint of Object.values(contractDocument.endpoints).filter(isLasting)) {
      if (!sendersOf(endpoint).includes(tenant.kind)) continue
      const random = (): number => 0.3
      const { canary: word, session, key } = tenant
      const id = (kind: string): string => tenant.all(kind)[0] ?? randomUUID()
      const input = inputOf(service, { word, session, id }, word, random)
      const { path, options } = buildRequest(endpoint, input)
      const { method = 'GET', headers = {}, body } = options
      const answer = await service.send(key, path, options)
      const texts = textsOf(answer)
      const request = { key, method, path, headers, body, status: answer.status }
      requests.push({ ...request, ...(texts.length > 0 && { texts }) })
    }
  }
  return requests
}

/** The texts of memories in an answer. */
const textsOf = ({ text }: ServiceAnswer): string[] =>
  [...text.matchAll(/"(?:content|text)":"([^"]*)"/g)].map(([, found]) => found!).toSorted()
