const charactersMax = 200
/** Characters in a row that count as a repetition of an input. */
const repeatedMin = 16
/** First or last characters of a key that show it. */
const partMin = 6
/** A shorter input is a part of many sentences. */
const inputMin = 4

/**
 * The message of a provider's refusal in one line of at most 200 characters, without repetitions of an input or a
 * secret; empty for an answer without a message, such as a page of HTML.
 *
 * The fields are those of OpenAI (`error.message`), text-embeddings-inference (`message`, `error`), FastAPI
 * (`detail`, as Infinity, vLLM and Voyage) and Google (a list with one error).
 */
export function providerWords(
  body: string,
  inputs: readonly string[],
  secrets: readonly string[],
): string {
  let words = messageOf(body).replaceAll(/\\u[0-9a-f]{4}|[\p{Cc}\s]+/giu, ' ')
  words = words.replaceAll(/\S+/g, word => (repeatsSecret(word, secrets) ? '…' : word))
  words = words.trim().slice(0, charactersMax)
  return withoutInputs(words, inputs).trim()
}

/** OpenAI quotes keys as `sk-ab***yz`. */
const repeatsSecret = (word: string, secrets: readonly string[]): boolean =>
  word.includes('***') ||
  secrets.some(
    secret =>
      secret.length >= 2 * partMin &&
      (word.includes(secret.slice(0, partMin)) || word.includes(secret.slice(-partMin))),
  )

function messageOf(body: string): string {
  let answer: unknown
  try {
    answer = JSON.parse(body)
  } catch {
    return /^\s*</.test(body) ? '' : body
  }
  return messageIn(answer, 0)
}

const messageFields = ['error', 'message', 'detail', 'msg', 'error_message']

function messageIn(value: unknown, depth: number): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null || depth > 3) return ''
  const fields = value as Record<string, unknown>
  const inner = Array.isArray(value) ? value.slice(0, 1) : messageFields.map(name => fields[name])
  for (const one of inner) {
    const message = messageIn(one, depth + 1)
    if (message) return message
  }
  return ''
}

/** Replaces every run of 16 characters or more that an input has too, and every whole short input. */
function withoutInputs(words: string, inputs: readonly string[]): string {
  const whole = new Set(inputs.map(input => input.trim()))
  const repeated = Array.from({ length: words.length }, () => false)
  const mark = (from: number, length: number) => repeated.fill(true, from, from + length)
  for (let from = 0; from + repeatedMin <= words.length; from++) {
    const run = words.slice(from, from + repeatedMin)
    if (inputs.some(input => input.includes(run))) mark(from, repeatedMin)
  }
  for (const input of whole) {
    if (input.length < inputMin || input.length > repeatedMin) continue
    for (let at = words.indexOf(input); at >= 0; at = words.indexOf(input, at + 1))
      mark(at, input.length)
  }
  return words.replaceAll(/[\s\S]/g, (sign, at: number) =>
    repeated[at] ? (repeated[at - 1] ? '' : '…') : sign,
  )
}
