import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConfigError } from '#shared/core/config.ts'
import { readOwnPrices } from '#shared/core/price-file.ts'
import { environmentReader } from '#shared/core/read-providers.ts'
import { Prices } from '#shared/models/prices.ts'
import pages from '#shared/models/prices.json' with { type: 'json' }
import { builtInProviders } from '#shared/core/provider-registry.ts'

const million = { inputTokens: 1_000_000, outputTokens: 1_000_000 }

function read(t: Test, content: string) {
  const path = join(t.testdir(), 'prices.json')
  writeFileSync(path, content)
  const faults: string[] = []
  const own = readOwnPrices(environmentReader({ PRICES_FILE: path }, faults), faults)
  return { prices: new Prices(own), faults }
}

t.test(
  'a model is known with and without its provider, by its snapshot, or not at all',
  async t => {
    const prices = new Prices(new Map())
    const few = { inputTokens: 3, outputTokens: 1 }
    t.equal(prices.costOf('openai/gpt-4.1-nano', few), 7e-7, 'without the tail of a float')
    for (const model of ['openai/gpt-5', 'gpt-5', 'openai/gpt-5-2025-08-07'])
      t.equal(prices.costOf(model, million), 11.25, model)
    t.equal(prices.costOf('anthropic/claude-haiku-4-5-20251001', million), 6)
    t.equal(prices.costOf('openai/gpt-4o-2024-05-13', million), 20, 'a snapshot with its own price')
    for (const model of [
      'openai/gpt-5-unheard-of',
      'lab/gpt-5',
      'openrouter/openai/gpt-5',
      'llama',
      '',
    ])
      t.equal(prices.costOf(model, million), null, model)
  },
)

t.test('cached input has its own price, or that of other input', async t => {
  const prices = new Prices(new Map())
  t.equal(prices.costOf('openai/gpt-5', { ...million, cachedTokens: 1_000_000 }), 10.125)
  t.equal(prices.costOf('openai/gpt-4', { ...million, cachedTokens: 1_000_000 }), 90)
  t.equal(prices.costOf('openai/gpt-5', { ...million, cachedTokens: 2_000_000 }), 10.125)
})

t.test('the file of the operator adds, changes and takes away', async t => {
  const { prices, faults } = read(
    t,
    JSON.stringify({
      'openai/gpt-5': { input: 1, cached: 0, output: 1 },
      'openai/gpt-4o': null,
      'lab/*': { input: 3, output: 3 },
      'lab/free*': { input: 0, output: 0 },
    }),
  )
  t.same(faults, [])
  t.equal(prices.costOf('openai/gpt-5-2025-08-07', million), 2)
  t.equal(prices.costOf('openai/gpt-4o', million), null)
  t.equal(prices.costOf('lab/x', million), 6)
  t.equal(prices.costOf('lab/free-x', million), 0)
  t.equal(prices.costOf('openai/gpt-5-mini', million), 2.25)
  t.match(prices.priceOf('lab/x'), { source: null, date: null })
  t.match(prices.priceOf('gpt-5-mini'), { source: /^https:/, date: /^\d{4}-\d\d-\d\d$/ })
})

t.test('each fault of the file is a sentence', async t => {
  const entries = {
    'gpt-5': { input: 1, output: 1 },
    'openai/a': { input: 1 },
    'openai/b': { input: 1, output: '1' },
    'openai/c': { input: -1, output: 1 },
    'openai/d': { input: 1, output: 1, cache: 1 },
    'openai/e': 7,
  }
  t.same(read(t, JSON.stringify(entries)).faults, [
    'PRICES_FILE "gpt-5" must be named <provider>/<model>, or <provider>/*',
    'PRICES_FILE "openai/a" lacks output, in dollars for a million tokens',
    'PRICES_FILE "openai/b" needs a number of dollars from 0 to 100000 as output',
    'PRICES_FILE "openai/c" needs a number of dollars from 0 to 100000 as input',
    'PRICES_FILE "openai/d" has the field "cache"; known are input, cached, output',
    'PRICES_FILE "openai/e" must be an object with input and output, or null',
  ])
  for (const content of ['', '[]', '{"a"'])
    t.match(read(t, content).faults, [/must name a JSON file/])
  const faults: string[] = []
  readOwnPrices(environmentReader({ PRICES_FILE: '/nowhere/prices.json' }, faults), faults)
  t.match(new ConfigError(faults).message, /PRICES_FILE must name a file that can be read: ENOENT/)
})

t.test('the shipped table names its providers, once each model, and its sources', async t => {
  const names = pages.flatMap(({ models }) => Object.keys(models))
  t.equal(new Set(names).size, names.length)
  t.same(
    names.filter(name => !Object.hasOwn(builtInProviders, name.split('/')[0]!)),
    [],
  )
  t.ok(pages.every(({ source, date }) => URL.canParse(source) && /^2026-\d\d-\d\d$/.test(date)))
})
