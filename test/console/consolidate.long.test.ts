import t from 'tap'
import { look, settled, visit } from '#test/console/browser.ts'
import { startConsole, type ConsoleTab } from '#test/console/console.ts'
import { buildKey, createTestClient } from '#test/support/api.ts'
import { startChatProvider, type ChatProvider } from '#test/support/chat-provider.ts'
import { ingestTexts } from '#test/support/consolidation.ts'
import { tablesHolding } from '#test/support/observe.ts'

/** A person consolidates a vault with a model of their own, in the browser. */

const provider: ChatProvider = await startChatProvider(t)
const env = { OPENAI_BASE_URL: `${provider.origin}/v1` }
const { backend, base, test } = await startConsole(t, env)

const said = ['We adopted a kitten.', 'She is called Ada.', 'I start in Lisbon on Monday.']
const written = (...texts: string[]): string =>
  JSON.stringify({ entries: texts.map(text => ({ text, importance: 7 })) })

async function begin({ open }: ConsoleTab) {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  await ingestTexts(client, said)
  const page = await open(key, 'consolidate')
  const press = (name: string | RegExp) => page.getByRole('button', { name }).first().click()
  const reflections = async () => (await client.get('/v1/memory/list?tier=2')).body.items
  return { key, client, page, press, reflections }
}

test('a batch is read by an own model, edited, committed, and leads back', async (t, tab) => {
  const { client, page, press, reflections } = await begin(tab)
  provider.script(
    () => 'Sorry, I cannot do that.',
    () => `Here: ${written('The user has a kitten, Ada.', 'Nothing much.')}`,
  )
  await page.getByText('3 memories, ').waitFor()
  await press('Check out a batch')
  await page.getByRole('heading', { name: 'Sources' }).waitFor()
  for (const text of said) await page.getByText(text).waitFor()
  await page.getByLabel('Model', { exact: true }).fill('openai/double')
  await page.getByLabel('Key for its provider').fill('sk-of-the-person')
  await press('Run the model')
  await page.getByLabel('Reflection 1', { exact: true }).waitFor()
  t.equal(provider.calls.length, 2, 'an answer of no use is asked for again')
  t.match(provider.calls[1], {
    authorization: 'Bearer sk-of-the-person',
    body: { model: 'double', messages: { length: 4 } },
  })
  t.match(provider.calls[0]!.body.messages[1]!.content, /kitten[^]*Ada[^]*Lisbon/)
  t.same(await reflections(), [], 'nothing is stored before it is committed')
  await look(t, page, 'consolidate-proposed')

  const first = page.getByLabel('Reflection 1', { exact: true })
  t.equal(await first.inputValue(), 'The user has a kitten, Ada.')
  await first.fill('The user adopted a kitten, Ada.')
  await page.getByLabel('Importance of reflection 1').selectOption('9')
  await press('Remove reflection 2')
  await press('Add one by hand')
  await page.getByLabel('Reflection 2', { exact: true }).fill('The user starts in Lisbon.')
  await press('Commit 2 reflections')
  await page.getByRole('heading', { name: '2 reflections made of 3 memories' }).waitFor()
  await look(t, page, 'consolidate-committed')
  await press(/^Lineage: The user adopted/)
  const dialog = page.getByRole('dialog')
  await dialog.getByText('3 sources').waitFor()
  for (const text of said) await dialog.getByText(text).waitFor()
  await page.keyboard.press('Escape')

  t.match(
    (await reflections()).map(({ text, importance }: Record<string, unknown>) => [
      text,
      importance,
    ]),
    [
      [/./, /9|5/],
      [/./, /9|5/],
    ],
  )
  const stats = (await client.get('/v1/memory/stats')).body
  t.equal(stats.memories, 5, 'neither the batch nor what the model wrote is remembered as said')
  await press('Next batch')
  await press('Check out a batch')
  await page.getByText('Nothing can be checked out').waitFor()
})

test('the key for the provider is nowhere kept, and a wrong one ends no session', async (t, tab) => {
  const { page, press } = await begin(tab)
  const secret = 'sk-of-this-test-only-0123'
  provider.script(() => ({ status: 401, message: 'Incorrect key.' }))
  await press('Check out a batch')
  await page.getByLabel('Model', { exact: true }).fill('openai/double')
  await page.getByLabel('Key for its provider').fill(secret)
  await press('Run the model')
  await page.getByRole('alert').getByText('Incorrect key.').waitFor()
  t.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 1)
  t.match(provider.calls, [{ authorization: `Bearer ${secret}` }])
  const kept = await page.evaluate(() =>
    JSON.stringify([
      ...[sessionStorage, localStorage].map(store => Object.entries(store)),
      location.href,
      document.cookie,
    ]),
  )
  t.notMatch(kept, secret)
  t.notMatch(kept, 'kitten')
  t.same(await tablesHolding(backend, secret), [])
})

test('a batch that is given up or left can be continued, with what was written', async (t, tab) => {
  const { page, press, reflections } = await begin(tab)
  await press('Check out a batch')
  await press('Add one by hand')
  await page.getByLabel('Reflection 1', { exact: true }).fill('A kitten, Ada.')
  await visit(page, 'usage')
  await visit(page, 'consolidate')
  t.equal(await page.getByLabel('Reflection 1', { exact: true }).inputValue(), 'A kitten, Ada.')
  await press('Give the batch up')
  await page.getByText('A batch of 3 memories is lent to you').waitFor()
  await press('Check out a batch')
  await page.getByText('Nothing can be checked out').waitFor()
  await settled(page)
  await press('Continue with it')
  await press('Commit 1 reflection')
  await page.getByRole('heading', { name: '1 reflection made of 3 memories' }).waitFor()
  t.match(await reflections(), [{ text: 'A kitten, Ada.' }])
})

test('a key that only reads is told what it lacks', async (t, { open }) => {
  const page = await open(`${await buildKey(backend)}:read`, 'consolidate')
  await page.getByText('This key only reads').waitFor()
  t.equal(await page.getByRole('button', { name: 'Check out a batch' }).count(), 0)
})
