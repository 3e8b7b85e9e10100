import type { Test } from 'tap'
import { builtInNames } from '#shared/core/provider-registry.ts'
import {
  startEmbeddingProvider,
  type EmbeddingProvider,
} from '#test/support/doubles/embedding-provider.ts'
import {
  embeddingServers,
  type EmbeddingServerName,
} from '#test/support/doubles/embedding-servers.ts'
import { fileOf, type KeyedClient } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

export const serverNames = Object.keys(embeddingServers) as EmbeddingServerName[]

/** A service that reaches every embedding server of the table, each under its name. */
export async function startEmbeddingService(t: Test) {
  const env: Record<string, string> = {}
  const providers = new Map<EmbeddingServerName, EmbeddingProvider>()
  for (const name of serverNames) {
    const provider = await startEmbeddingProvider(t, 64, embeddingServers[name])
    providers.set(name, provider)
    // Google's address has no version path.
    const { origin } = new URL(provider.baseUrl)
    env[`${name.toUpperCase()}_BASE_URL`] = name === 'google' ? origin : provider.baseUrl
    env[`${name.toUpperCase()}_API_KEY`] = `key-of-${name}`
  }
  const own = serverNames.filter(name => !builtInNames.some(builtIn => builtIn === name))
  return { ...(await startService(t, { env: { ...env, PROVIDERS: own.join() } })), providers }
}

const sentences = [
  'The harbour was calm and the boats came home before the storm. ',
  '她昨天在图书馆读完了那本关于海洋的书，然后写了一封很长的信。',
  'เมื่อวานนี้เธออ่านหนังสือเกี่ยวกับทะเลจบในห้องสมุดแล้วเขียนจดหมายยาว ',
  'Вчера она дочитала в библиотеке книгу о море и написала длинное письмо. ',
  'أمس قرأت كتابا عن البحر في المكتبة ثم كتبت رسالة طويلة. ',
  '🧜‍♀️🌊📚✉️👩‍👩‍👧‍👦 ',
  'const total = rows.reduce((sum, { size }) => sum + size, 0); ',
  'deadbeef0123456789abcdef==',
]
const odd = ['.', '…', '0', '\u200b?', '{"a":[null,{}]}', '🙂', '<|endoftext|>', 'e\u0301']

/**
 * Lines of a file: short ones, and every so many a long one in another script, and a text that is hardly one. No
 * two are the same.
 */
const mixedLines = (count: number, longEvery: number): { content: string }[] =>
  Array.from({ length: count }, (_, n) => {
    if (n % longEvery === 1) {
      const sentence = sentences[Math.floor(n / longEvery) % sentences.length]!
      const text = sentence.repeat(200).slice(0, 500 + ((n * 37) % 5_000))
      return { content: `Letter ${n}: ${text}`.toWellFormed() }
    }
    if (n % longEvery === 2) return { content: `${odd[n % odd.length]!} ${n}` }
    const thing = n % 2 ? 'kettle' : 'lantern'
    return { content: `Note ${n}: the ${thing} of house ${n} is kept in shed ${n % 97}` }
  })

/** Uploads so many mixed lines into the space of a server's model. */
export const uploadMixed = (
  client: KeyedClient,
  name: EmbeddingServerName,
  { count, longEvery, prefer }: { count: number; longEvery: number; prefer?: string },
) =>
  client.send('POST', `/v1/memory/upload?embeddings=${name}%2Fmodel`, {
    body: fileOf(mixedLines(count, longEvery)),
    headers: { 'content-type': 'application/x-ndjson', ...(prefer && { prefer }) },
  })
