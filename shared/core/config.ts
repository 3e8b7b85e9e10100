import { createHash } from 'node:crypto'
import { parseMongoUri, parsePostgresUrl } from '#shared/core/database-url.ts'
import { readOwnPrices } from '#shared/core/price-file.ts'
import {
  environmentReader,
  parseHttpUrl,
  readProviders,
  type Environment,
  type ReadVariable,
} from '#shared/core/read-providers.ts'
import { lacksAddress, splitModelName, type Providers } from '#shared/core/provider-registry.ts'

/** A `/rerank` endpoint; without a model, of text-embeddings-inference. */
export type RerankerSettings = { url: string; model: string; apiKey: string; timeoutMs: number }

/** An OpenID provider, found by discovery below its issuer. */
export type OidcSettings = {
  issuer: string
  clientId: string
  clientSecret: string
  name: string
  /** Whether an email of which the issuer does not say that it is verified counts as verified. */
  vouches: boolean
  /** The claim that names the groups of a person; null: none is read. */
  groupsClaim: string | null
}

export type VectorIndexOptions = Config['vectorIndex']

/** The id is stored with each sealed secret, so that keys can be rotated. */
export type MasterKey = { id: string; key: Buffer }

export type Config = ReturnType<typeof readConfig>

export class ConfigError extends Error {
  readonly faults: string[]

  constructor(faults: string[]) {
    super(`The environment is not usable:\n${faults.map(fault => `  ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/**
 * Reads the environment. Every variable is in this file or in read-providers.ts, and in the README's table.
 *
 * @throws ConfigError naming every fault at once.
 */
export function readConfig(env: Environment) {
  const faults: string[] = []
  const read = environmentReader(env, faults)
  const required = <T>(name: string, parse: (text: string) => T, fallback: T): T => {
    if (!env[name]?.trim()) faults.push(`${name} is missing`)
    return read(name, parse, fallback)
  }

  const providers = readProviders(read, faults)
  const config = {
    port: read('PORT', wholeNumberParser(0, 65_535), 3000),
    host: read('HOST', text => text, '127.0.0.1'),
    /** The port of a worker's health and metrics; null for none. */
    metricsPort: read<number | null>('METRICS_PORT', wholeNumberParser(0, 65_535), null),
    databaseUrl: required('DATABASE_URL', parsePostgresUrl, ''),
    mongodbUri: required('MONGODB_URI', parseMongoUri, ''),
    /**
     * The model of new vaults: `local` or a provider-prefixed embedding model. In an open backend it is the one that
     * the database holds (`resolveDefaultEmbeddingModel`).
     */
    embeddingModel: read('EMBEDDINGS', embeddingModelParser(providers), defaultEmbeddings(env)),
    isEmbeddingModelExplicit: Boolean(env.EMBEDDINGS?.trim()),
    /** Prefixes of its queries and texts; '' is none, a missing one is that of the model's family. */
    embeddingPrefixes: {
      ...prefixOf('query', env.EMBEDDINGS_QUERY_PREFIX),
      ...prefixOf('passage', env.EMBEDDINGS_PASSAGE_PREFIX),
    } as { query?: string; passage?: string },
    /** Length of its vectors; null for the model's own. */
    embeddingDimensions: read<number | null>(
      'EMBEDDINGS_DIMENSIONS',
      wholeNumberParser(1, 65_536),
      null,
    ),
    /** The model that describes pictures of files, with its provider; null: none is asked, and no picture goes out. */
    captionModel: read<string | null>('CAPTIONS', captionModelParser(providers), null),
    /** The first one seals; every one opens. */
    masterKeys: required('MASTER_KEY', parseMasterKeys, []),
    /** Secret of the HMAC by which keys are found. */
    keyPepper: required('KEY_PEPPER', parseSecret, ''),
    adminSecret: read<string | null>('ADMIN_SECRET', parseTokenSecret, null),
    adminEmail: read<string | null>('ADMIN_EMAIL', parseEmail, null),
    /** Origin under which clients reach the service; with it OAuth for /mcp is on. Null: there is no login. */
    publicUrl: read<string | null>('PUBLIC_URL', parsePublicUrl, null),
    logLevel: read('LOG_LEVEL', choiceParser('silent', 'error', 'warn', 'info', 'debug'), 'info'),
    rateLimits: read('RATE_LIMITS', choiceParser('on', 'off'), 'on') === 'on',
    /** Proxies in front of the service, each of which adds to X-Forwarded-For; limits count the address before them. */
    trustedProxies: read('TRUSTED_PROXIES', wholeNumberParser(0, 10), 0),
    /** Users that an account may have, where the operator has set no number for it. */
    usersMax: read('USERS_MAX', wholeNumberParser(0, 100_000_000), 100_000),
    /** Connections of one address without a whole request head; null for no bound. */
    pendingPerAddress:
      read('PENDING_CONNECTIONS_PER_ADDRESS', wholeNumberParser(0, 2_000), 256) || null,
    /** Time that a client may leave a response unread. */
    clientTimeoutMs: read('CLIENT_PATIENCE_SECONDS', wholeNumberParser(1, 86_400), 120) * 1000,
    /** Time of a provider until the first byte, and between two chunks. */
    providerFirstByteMs:
      read('PROVIDER_FIRST_BYTE_SECONDS', wholeNumberParser(1, 86_400), 600) * 1000,
    providerIdleMs: read('PROVIDER_IDLE_SECONDS', wholeNumberParser(1, 86_400), 600) * 1000,
    /** Time of a proxied call for its key and for each step of its recall, before it continues without memory. */
    recallTimeoutMs: read('RECALL_TIMEOUT_MS', wholeNumberParser(50, 60_000), 1_500),
    /** For tests. */
    allowLoopbackWebhooks: read('WEBHOOK_LOOPBACK', choiceParser('on', 'off'), 'off') === 'on',
    /** Addresses that webhooks may have although they are private or not encrypted. */
    listedWebhooks: read<string[]>('WEBHOOK_PRIVATE_URLS', parseReceivers, []),
    vaultIndexCacheBytes:
      read('INDEX_CACHE_MB', wholeNumberParser(1, 1_000_000), 512) * 1024 * 1024,
    /** How vector search indexes are created, where MongoDB has vector search. */
    vectorIndex: {
      quantization: read(
        'VECTOR_INDEX_QUANTIZATION',
        choiceParser('none', 'scalar', 'binary'),
        'none',
      ),
      method: read('VECTOR_INDEX_METHOD', choiceParser('hnsw', 'flat'), 'hnsw'),
    },
    /** Time that a member's exchange waits for others of its session, to be extracted together. */
    orgGatherSeconds: read('ORG_GATHER_SECONDS', wholeNumberParser(0, 600), 5),
    /** The OpenID provider of the console's sign-in; null for none. */
    oidc: readOidc(read, faults),
    providers,
    /** Headers of model calls that go to providers, or stay here, beside those that do by themselves. */
    providerHeaders: {
      pass: read<string[]>('PROVIDER_HEADERS_PASS', parseHeaderNames, []),
      keep: read<string[]>('PROVIDER_HEADERS_KEEP', parseHeaderNames, []),
    },
    /** The operator's changes to the price table. */
    ownPrices: readOwnPrices(read, faults),
    reranker: readReranker(read, faults),
    /** What is exported over OTLP; null for nothing. */
    telemetry: readTelemetry(read),
  }
  if (config.adminSecret !== null && config.adminEmail === null) {
    faults.push('ADMIN_EMAIL is missing: ADMIN_SECRET needs the email it acts for')
  }
  if (config.oidc !== null && config.publicUrl === null) {
    faults.push('PUBLIC_URL is missing: OIDC_ISSUER sends people back to it')
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return config
}

const defaultEmbeddings = (env: Environment): string =>
  env.OPENAI_API_KEY?.trim() ? 'openai/text-embedding-3-small' : 'local'

/** White space at the end is part of a prefix. Some env files drop it, so a value may stand in double quotes. */
const prefixOf = (kind: 'query' | 'passage', value: string | undefined) =>
  value === undefined ? {} : { [kind]: /^"[\s\S]*"$/.test(value) ? value.slice(1, -1) : value }

function readReranker(read: ReadVariable, faults: string[]): RerankerSettings | null {
  const url = read('RERANK_URL', text => parseHttpUrl(text).href, '')
  const model = read('RERANK_MODEL', text => text, '')
  const apiKey = read('RERANK_API_KEY', text => text, '')
  const timeoutMs = read('RERANK_TIMEOUT_MS', wholeNumberParser(10, 60_000), 300)
  if (url) return { url, model, apiKey, timeoutMs }
  const isMeant = model !== '' || apiKey !== ''
  if (isMeant && read('RERANK_URL', () => false, true))
    faults.push('RERANK_URL is missing: RERANK_MODEL and RERANK_API_KEY are for it')
  return null
}

export type TelemetrySignals = {
  traces: boolean
  logs: boolean
  /** Null: none. The SDK makes the exporters of the others from their variables itself. */
  metrics: { protocol: OtlpProtocol; intervalMs: number; timeoutMs: number } | null
}

type OtlpProtocol = 'grpc' | 'http/json' | 'http/protobuf'

/**
 * The variables of https://opentelemetry.io/docs/specs/otel/protocol/exporter/ that say which signals go out. Without
 * the endpoint for all of them, those with one of their own do.
 */
function readTelemetry(read: ReadVariable): TelemetrySignals | null {
  const protocolOf = (variable: string, fallback: OtlpProtocol): OtlpProtocol =>
    read(variable, choiceParser('grpc', 'http/json', 'http/protobuf'), fallback)
  const usual = protocolOf('OTEL_EXPORTER_OTLP_PROTOCOL', 'http/protobuf')
  // A client of gRPC takes other forms of addresses, too.
  const isGiven = (signal: string, protocol: OtlpProtocol): boolean =>
    read(
      `OTEL_EXPORTER_OTLP_${signal}ENDPOINT`,
      text => protocol === 'grpc' || Boolean(parseHttpUrl(text)),
      false,
    )
  const isForAll = isGiven('', usual)
  const signal = (name: string) => {
    const protocol = protocolOf(`OTEL_EXPORTER_OTLP_${name}_PROTOCOL`, usual)
    const isNone = read(
      `OTEL_${name}_EXPORTER`,
      text => text.split(/[\s,]+/).includes('none'),
      false,
    )
    return { protocol, isExported: (isGiven(`${name}_`, protocol) || isForAll) && !isNone }
  }
  const [traces, logs, metrics] = [signal('TRACES'), signal('LOGS'), signal('METRICS')]
  const isDisabled = read('OTEL_SDK_DISABLED', text => text.toLowerCase() === 'true', false)
  const milliseconds = wholeNumberParser(1, 86_400_000)
  const intervalMs = read('OTEL_METRIC_EXPORT_INTERVAL', milliseconds, 60_000)
  const timeoutMs = read('OTEL_METRIC_EXPORT_TIMEOUT', milliseconds, 30_000)
  if (isDisabled || ![traces, logs, metrics].some(({ isExported }) => isExported)) return null
  return {
    traces: traces.isExported,
    logs: logs.isExported,
    metrics: metrics.isExported ? { protocol: metrics.protocol, intervalMs, timeoutMs } : null,
  }
}

function readOidc(read: ReadVariable, faults: string[]): OidcSettings | null {
  const issuer = read('OIDC_ISSUER', parseIssuer, '')
  const clientId = read('OIDC_CLIENT_ID', text => text, '')
  const clientSecret = read('OIDC_CLIENT_SECRET', text => text, '')
  const name = read('OIDC_NAME', text => text, issuer && new URL(issuer).host)
  const vouches = read('OIDC_VOUCH_EMAILS', choiceParser('on', 'off'), 'off') === 'on'
  const groupsClaim = read('OIDC_GROUPS_CLAIM', text => text, '') || null
  if (vouches && manyTenants.test(issuer))
    faults.push(
      'OIDC_VOUCH_EMAILS is on for an issuer of many tenants: name the one of your tenant',
    )
  const given = { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret }
  const missing = Object.entries(given).filter(([, value]) => value === '')
  if (missing.length === 0) return { issuer, clientId, clientSecret, name, vouches, groupsClaim }
  if (missing.length < 3) for (const [variable] of missing) faults.push(`${variable} is missing`)
  return null
}

/** Issuers of Microsoft Entra at which each tenant says itself what the emails of its people are. */
const manyTenants = /\/(?:common|organizations|consumers)\//

const isSafeOrigin = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' ||
  (protocol === 'http:' && /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(hostname))

function parseIssuer(text: string): string {
  if (URL.canParse(text) && isSafeOrigin(new URL(text))) return text
  throw new Error('must be an https:// address, as the provider names its issuer')
}

function wholeNumberParser(min: number, max: number): (text: string) => number {
  return text => {
    const value = Number(text)
    if (Number.isInteger(value) && value >= min && value <= max) return value
    throw new Error(`must be a whole number from ${min} to ${max}`)
  }
}

function choiceParser<const Choice extends string>(...choices: Choice[]): (text: string) => Choice {
  return text => {
    const choice = choices.find(candidate => candidate === text.toLowerCase())
    if (choice) return choice
    throw new Error(`must be one of ${choices.join(', ')}`)
  }
}

function embeddingModelParser(providers: Providers): (text: string) => string {
  return text => {
    if (text === 'local' || splitModelName(providers, text)) return text
    throw new Error(
      `must be local or <provider>/<model> with a provider of ${[...providers.keys()].join(', ')}`,
    )
  }
}

const captionModelParser = (providers: Providers) => (text: string) => {
  const provider = splitModelName(providers, text)?.provider
  if (provider && (provider.selfHosted ? !lacksAddress(provider) : provider.apiKey)) return text
  throw new Error('must be <provider>/<model> of a provider with a key, or an address, in here')
}

function parseHeaderNames(text: string): string[] {
  const names = text.toLowerCase().split(/[\s,]+/)
  if (names.every(name => /^[\w-]{2,128}\*?$/.test(name))) return names
  throw new Error(
    'must be names of headers, separated by commas; a * at the end stands for the rest',
  )
}

function parseReceivers(text: string): string[] {
  const urls = text.split(/[\s,]+/)
  const form = /^(?:(?:otlp\+)?https?:\/\/[^/]+.*|syslog\+(?:tls|tcp):\/\/[^/]+:\d+\/?)$/i
  if (urls.every(url => form.test(url) && URL.canParse(url))) return urls
  throw new Error(
    'must be addresses with https, http, otlp+https, otlp+http, syslog+tls or syslog+tcp; those of syslog with a port',
  )
}

function parseSecret(text: string): string {
  if (text.length >= 16) return text
  throw new Error('must have at least 16 characters')
}

function parseTokenSecret(text: string): string {
  if (text.startsWith('mk_')) throw new Error('must not begin like a Memory Key, with mk_')
  if (/^[\x21-\x7E]+$/.test(text)) return parseSecret(text)
  throw new Error('must have no spaces and no characters beyond ASCII: it is sent in a header')
}

function parseEmail(text: string): string {
  if (/^[^\s@]+@[^\s@]+$/.test(text)) return text.toLowerCase()
  throw new Error('must be an email address')
}

/** An address of the login must not be readable on the way: http is for this machine alone. */
function parsePublicUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && isSafeOrigin(url) && `${url.origin}/` === url.href) return url.origin
  throw new Error('must be an https:// origin without a path, such as https://memory.example.com')
}

function parseMasterKeys(text: string): MasterKey[] {
  return text.split(',').map(part => {
    const digits = part.trim()
    const key = Buffer.from(digits, /^[0-9a-f]{64}$/i.test(digits) ? 'hex' : 'base64')
    if (key.length !== 32) throw new Error('must be 32 bytes in hex or base64')
    return { id: createHash('sha256').update(key).digest('hex').slice(0, 8), key }
  })
}
