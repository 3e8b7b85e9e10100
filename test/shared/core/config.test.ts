import { readFileSync } from 'node:fs'
import t from 'tap'
import { ConfigError, readConfig } from '#shared/core/config.ts'

const enough = {
  DATABASE_URL: 'postgres://db/vault',
  MONGODB_URI: 'mongodb://mongo/vault',
  MASTER_KEY: 'ab'.repeat(32),
  KEY_PEPPER: 'sixteen characters',
}

t.test('defaults: loopback, port 3000, offline embeddings', async t => {
  t.match(readConfig(enough), {
    port: 3000,
    host: '127.0.0.1',
    embeddingModel: 'local',
    rateLimits: true,
    vaultIndexCacheBytes: 512 * 1024 * 1024,
    adminSecret: null,
  })
})

t.test('.env.example has every variable, with its default', async t => {
  const page = readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8')
  const written = new Map(
    [...page.matchAll(/^#([A-Z_]+)=(.*)$/gm)].map(([, name, of]) => [name!, of!]),
  )
  const read = new Set(['DATA_DIR'])
  t.throws(() => readConfig(new Proxy({}, { get: (_, name) => void read.add(String(name)) })))
  const ofProviders = /^(?!RERANK_|OPENAI_).*_(API_KEY|BASE_URL|MODELS)$/
  const named = [...read].filter(name => !ofProviders.test(name))
  t.same([...written.keys()].toSorted(), named.toSorted())
  // An empty prefix is one, a missing one is the model's.
  for (const kind of ['QUERY', 'PASSAGE']) written.delete(`EMBEDDINGS_${kind}_PREFIX`)
  t.same(readConfig({ ...Object.fromEntries(written), ...enough }), readConfig(enough))
})

t.test('an OpenAI key switches to its embeddings; EMBEDDINGS wins', async t => {
  const keyed = { ...enough, OPENAI_API_KEY: 'sk-test' }
  t.equal(readConfig(keyed).embeddingModel, 'openai/text-embedding-3-small')
  t.equal(readConfig({ ...keyed, EMBEDDINGS: 'local' }).embeddingModel, 'local')
  t.equal(readConfig(keyed).providers.get('openai')?.apiKey, 'sk-test')
})

t.test('prefixes keep their spaces; an empty one is not a missing one', async t => {
  const read = (query?: string) =>
    readConfig({ ...enough, ...(query !== undefined && { EMBEDDINGS_QUERY_PREFIX: query }) })
  t.same(read().embeddingPrefixes, {})
  t.same(read('').embeddingPrefixes, { query: '' })
  t.same(read('query: ').embeddingPrefixes, { query: 'query: ' })
  t.same(read('"query: "').embeddingPrefixes, { query: 'query: ' })
  t.equal(readConfig({ ...enough, EMBEDDINGS_DIMENSIONS: '256' }).embeddingDimensions, 256)
})

t.test(
  'connection strings that the drivers would refuse in their own words, or read as another',
  async t => {
    const faultOf = (name: string, value: string): string => {
      try {
        readConfig({ ...enough, [name]: value })
        return ''
      } catch (error) {
        return (error as ConfigError).faults.join('\n')
      }
    }
    for (const [url, fault] of [
      ['postgres://app:p@ss:w/rd#1@host/db', /^DATABASE_URL must be one URL: .*%40/],
      ['postgres://app:1/secret@host/db', /%2F/],
      ['postgres://app:secret#1@host/db', /%23/],
      ['postgres://one:5432,two:5432/db', /one host/],
      ['postgres://app:secret@one,two/db', /one host/],
      ['postgres://host:99999/db', /port 99999/],
      ['postgres://host/db?sslmode=require&sslrootcert=/nowhere/ca.pem', /sslrootcert.*nowhere/],
    ] as const) {
      t.match(faultOf('DATABASE_URL', url), fault, url)
      t.notMatch(faultOf('DATABASE_URL', url), /secret|ss:w/)
    }
    for (const [url, fault] of [
      ['mongodb://app:p@ss:w@host/db', /^MONGODB_URI must be one connection string: .*%40/],
      ['mongodb://app:pa/ss@host/db', /%2F/],
      ['mongodb://app:50%@host/db', /%25/],
      ['mongodb://one:27017,two:99999/db', /port 99999/],
      ['mongodb://host/my.vault', /database/],
      ['mongodb+srv://host/a%20b c?w=majority', /database/],
      ['mongodb://host/db?tls=true&tlsCAFile=/nowhere/ca.pem', /tlsCAFile.*nowhere/],
    ] as const)
      t.match(faultOf('MONGODB_URI', url), fault, url)
    const both = { DATABASE_URL: 'postgres://a,b/db', MONGODB_URI: 'mongodb://h/a.b', PORT: 'x' }
    t.throws(() => readConfig({ ...enough, ...both }), {
      message: /PORT[^]*DATABASE_URL[^]*MONGODB_URI/,
    })
    for (const url of [
      'postgres://app:p%40ss%3Aw%2Frd%231@host:5432/db?sslmode=no-verify',
      'postgres://app:p%ss w@host/db',
      'postgres://app:secret@/db?host=/var/run/postgresql',
      'postgres:///db?host=/var/run/postgresql',
      'postgres://%2Fvar%2Frun%2Fpostgresql/db',
      'postgresql://app@[::1]:5432/db',
      'postgres://host/db?user=me@tenant',
    ])
      t.equal(faultOf('DATABASE_URL', url), '', url)
    for (const uri of [
      'mongodb://u:p%40ss@one:1,two:2,[::1]:3/vault?replicaSet=a&authSource=admin',
      'mongodb+srv://u:p@cluster.example.net',
      'mongodb://%2Ftmp%2Fmongodb-27017.sock/?w=1',
      'mongodb://host',
    ])
      t.equal(faultOf('MONGODB_URI', uri), '', uri)
  },
)

t.test('every fault is said at once', async t => {
  const env = {
    PORT: 'http',
    DATABASE_URL: 'mysql://x',
    MASTER_KEY: 'short',
    EMBEDDINGS: 'nobody/model',
    EMBEDDINGS_DIMENSIONS: 'many',
    OPENAI_BASE_URL: 'https://user:secret@example.com/v1',
    ADMIN_SECRET: 'long-enough-secret',
  }
  try {
    readConfig(env)
    t.fail('accepted')
  } catch (error) {
    t.ok(error instanceof ConfigError)
    const { faults, message } = error as ConfigError
    const names =
      'PORT DATABASE_URL MONGODB_URI MASTER_KEY KEY_PEPPER EMBEDDINGS EMBEDDINGS_DIMENSIONS OPENAI_BASE_URL ADMIN_EMAIL'
    for (const name of names.split(' '))
      t.match(faults.join('\n'), new RegExp(`^${name}`, 'm'), name)
    t.notMatch(message, /secret/, 'values are not repeated')
  }
})

t.test('providers of one’s own: what cannot be used is said with all else', async t => {
  const faultsOf = (env: Record<string, string>): string => {
    try {
      readConfig({ ...enough, ...env })
      return ''
    } catch (error) {
      return (error as ConfigError).faults.join('\n')
    }
  }
  const own = { PROVIDERS: 'my-lab', MY_LAB_BASE_URL: 'http://lab:8080/v1' }
  t.match(readConfig({ ...enough, ...own, EMBEDDINGS: 'my-lab/m' }).providers.get('my-lab'), {
    name: 'my-lab',
    baseUrl: 'http://lab:8080/v1',
    selfHosted: true,
  })
  for (const [names, fault] of [
    ['Lab', /small letter/],
    ['x', /small letter/],
    ['lab,,other', /small letter/],
    ['lab_1', /small letter/],
    ['l'.repeat(32), /small letter/],
    ['lab,openai', /openai, which is built in: OPENAI_BASE_URL/],
    ['local', /local/],
    ['lab', /^LAB_BASE_URL is missing: PROVIDERS names lab$/],
  ] as const)
    t.match(faultsOf({ PROVIDERS: names }), fault, names)
  for (const [url, fault] of [
    ['lab:8080', /http\(s\) URL/],
    ['ftp://lab/v1', /http\(s\) URL/],
    ['http://me:secret@lab/v1', /credentials/],
    ['http://lab/v1?key=secret', /\?api-version=/],
    ['http://lab/v1#x', /\?api-version=/],
    ['https://res.openai.azure.com/', /\/openai\/v1, or with \/openai\?api-version/],
  ] as const) {
    const faults = faultsOf({ ...own, MY_LAB_BASE_URL: url, PORT: 'x', MISTRAL_BASE_URL: url })
    t.match(faults, fault, url)
    t.match(faults, /^PORT .*/m)
    t.match(faults, /^MISTRAL_BASE_URL /m, 'a built-in one is read alike')
    t.notMatch(faults, /secret|missing/)
  }
  t.match(faultsOf({ RERANK_MODEL: 'm' }), /^RERANK_URL is missing/)
  t.match(faultsOf({ RERANK_MODEL: 'm', RERANK_URL: 'rerank' }), /^RERANK_URL must be an http/)
  t.match(faultsOf({ PROVIDERS: 'rerank' }), /reranker/)
  t.match(faultsOf({ ...own, MY_LAB_MODELS: 'a,,b' }), /^MY_LAB_MODELS .*commas/)
  t.match(faultsOf({ ...own, EMBEDDINGS: 'other/m' }), /^EMBEDDINGS .*my-lab/)
  for (const model of ['gpt-5-mini', 'other/m', 'openai/gpt-5-mini', 'ollama/llava'])
    t.match(faultsOf({ CAPTIONS: model }), /^CAPTIONS must be <provider>\/<model>/, model)
  const key = { OPENAI_API_KEY: 'sk-test', CAPTIONS: 'openai/gpt-5-mini' }
  t.equal(readConfig({ ...enough, ...key }).captionModel, 'openai/gpt-5-mini')
  const ollama = { OLLAMA_BASE_URL: 'http://127.0.0.1:11434/v1', CAPTIONS: 'ollama/llava' }
  t.equal(readConfig({ ...enough, ...ollama }).captionModel, 'ollama/llava')
})

t.test('an admin secret that no header carries is a fault', async t => {
  const email = { ADMIN_EMAIL: 'ada@example.com' }
  for (const bad of ['open sesame, please', 'tab\tbed-and-long-enough', 'größer-als-sechzehn'])
    t.throws(() => readConfig({ ...enough, ...email, ADMIN_SECRET: bad }), /ADMIN_SECRET.*spaces/)
  const good = ' open-sesame:please/+= '
  t.equal(readConfig({ ...enough, ...email, ADMIN_SECRET: good }).adminSecret, good.trim())
})

t.test('several master keys: the first seals, and each has an id', async t => {
  const { masterKeys } = readConfig({
    ...enough,
    MASTER_KEY: `${'01'.repeat(32)},${'02'.repeat(32)}`,
  })
  t.equal(masterKeys.length, 2)
  t.not(masterKeys[0]!.id, masterKeys[1]!.id)
})
