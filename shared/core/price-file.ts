import { readFileSync } from 'node:fs'
import type { ReadVariable } from '#shared/core/read-providers.ts'

/** Dollars for a million tokens. Without `cached`, input from a provider's cache costs what other input does. */
export type Price = { input: number; cached?: number; output: number }

/** By `<provider>/<model>`, or the beginning of such a name and `*`; null: no price is known. */
export type OwnPrices = ReadonlyMap<string, Price | null>

const none: OwnPrices = new Map()

/**
 * Reads the operator's prices, a JSON file that `PRICES_FILE` names:
 * `{"<provider>/<model>": {"input": 2, "cached": 0.2, "output": 10}, "<provider>/*": null}`.
 *
 * @param faults gets a sentence for each entry that cannot be used
 */
export function readOwnPrices(read: ReadVariable, faults: string[]): OwnPrices {
  const entries = read('PRICES_FILE', parsePriceFile, {})
  const prices = new Map<string, Price | null>()
  for (const [name, entry] of Object.entries(entries)) {
    const fault = faultOf(name, entry)
    if (fault === null) prices.set(name, entry as Price | null)
    else faults.push(`PRICES_FILE ${JSON.stringify(name.slice(0, 100))} ${fault}`)
  }
  return prices.size > 0 ? prices : none
}

function parsePriceFile(path: string): object {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`must name a file that can be read: ${(error as Error).message}`, {
      cause: error,
    })
  }
  const content = parseJson(text)
  if (isRecord(content)) return content
  throw new Error('must name a JSON file with an object of models and their prices')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const namePattern = /^[a-z][a-z0-9-]{1,30}\/[\x21-\x7E]{1,200}$/
const dollarsMax = 100_000
const required = ['input', 'output']
const fields = new Set([...required, 'cached'])

function faultOf(name: string, entry: unknown): string | null {
  if (!namePattern.test(name)) return 'must be named <provider>/<model>, or <provider>/*'
  if (entry === null) return null
  if (!isRecord(entry)) return 'must be an object with input and output, or null'
  const unknown = Object.keys(entry).find(field => !fields.has(field))
  if (unknown !== undefined)
    return `has the field ${JSON.stringify(unknown.slice(0, 100))}; known are input, cached, output`
  const missing = required.find(field => entry[field] === undefined)
  if (missing !== undefined) return `lacks ${missing}, in dollars for a million tokens`
  const wrong = Object.keys(entry).find(field => !isPrice(entry[field]))
  return wrong === undefined
    ? null
    : `needs a number of dollars from 0 to ${dollarsMax} as ${wrong}`
}

const isPrice = (value: unknown): boolean =>
  typeof value === 'number' && value >= 0 && value <= dollarsMax
