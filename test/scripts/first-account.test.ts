import t from 'tap'
import { mintFirstKeys } from '#scripts/credentials.ts'
import { createFirstAccount } from '#scripts/first-account.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { providersOf } from '#test/support/start/providers.ts'
import { countRows, tableText } from '#test/support/checks/observe.ts'

const config = await createTestConfig(t, {
  OPENAI_API_KEY: 'sk-operator-0123456789',
  MISTRAL_API_KEY: 'operator of mistral',
  OLLAMA_BASE_URL: 'http://127.0.0.1:1/v1',
  EMBEDDINGS: 'local',
})
const backend = await createTestBackend(t, { config })
const { postgres } = backend

t.test('without a place for its keys there is no account', async t => {
  const full = () => {
    throw new Error('No space left on device')
  }
  await t.rejects(createFirstAccount(postgres, config, full), { message: /No space/ })
  t.equal(await countRows(backend, 'accounts'), 0)
})

t.test(
  "the first account is unlimited and has the operator's provider keys as its own",
  async t => {
    const keys = mintFirstKeys()
    t.match(keys, { memory_key: /^mk_\w{32}$/, admin_key: /^mk_admin_\w{32}$/ })
    const made = await createFirstAccount(postgres, config, () => keys)
    t.same(made, keys)
    const { rows } = await postgres.query('select * from accounts')
    t.match(rows, [{ email: 'owner@localhost', payment_method: 'on-file', balance: null }])
    t.same(Object.fromEntries(await openProviderKeys(backend, rows[0]!.id)), {
      openai: 'sk-operator-0123456789',
      mistral: 'operator of mistral',
    })
    t.notMatch(await tableText(backend, 'provider_keys'), '0123456789')

    const { base } = await startTestApi(t, backend)
    const { body } = await createTestClient(base, made!.memory_key).get('/v1/account/provider-keys')
    t.match(body.provider_keys, [
      { provider: 'mistral', masked_key: 'ope…tral' },
      { provider: 'openai', masked_key: 'sk-…6789' },
    ])
  },
)

t.test('a second start makes nothing, and leaves the keys as they are', async t => {
  const changed = { ...config, providers: providersOf({ OPENAI_API_KEY: 'another one' }) }
  const unasked = () => t.fail('keys are made') as never
  t.equal(await createFirstAccount(postgres, changed, unasked), null)
  const { rows } = await postgres.query('select id from accounts')
  t.equal(rows.length, 1)
  t.equal((await openProviderKeys(backend, rows[0]!.id)).get('openai'), 'sk-operator-0123456789')
})
