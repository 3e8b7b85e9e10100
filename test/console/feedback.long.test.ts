import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { look, press, settled } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { ingestTexts } from '#test/support/start/consolidation.ts'

const { backend, base, test } = await startConsole(t)

/** A vault with two memories, and a client of it. */
async function buildVault() {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  await ingestTexts(client, ['My cat is called Ada.', 'The dentist is on Tuesday.'])
  const find = async (): Promise<string[]> => {
    const { body } = await client.post('/v1/memory/search', {
      query: 'What is my cat called?',
      limit: 5,
    })
    return (body.memories as { content: string }[]).map(({ content }) => content)
  }
  return { key, client, find }
}

const rowOf = (page: Page, text: string): Locator => page.locator('article', { hasText: text })
const toldNoMore = (row: Locator): Locator => row.getByText('Told no more', { exact: true })

/** Says of a memory on the page what is to be said. */
async function say(page: Page, text: string, choice: string): Promise<void> {
  await press(rowOf(page, text), /^Feedback: /)
  const dialog = page.getByRole('dialog', { name: 'Is it right?' })
  await dialog.getByLabel('This memory').selectOption(choice)
  await press(dialog, 'Save')
  await dialog.waitFor({ state: 'detached' })
}

test('a memory that is outdated is told no more, stays in the list, and is taken back', async (t, {
  open,
}) => {
  const { key, client, find } = await buildVault()
  const page = await open(key, 'timeline')
  const row = rowOf(page, 'My cat is called Ada.')
  t.match(await find(), ['My cat is called Ada.'])
  await say(page, 'My cat is called Ada.', 'It is outdated')
  await page.getByText('Your feedback is kept.').waitFor()
  await toldNoMore(row).waitFor()
  t.notMatch((await find()).join(), 'Ada')
  t.equal(await toldNoMore(rowOf(page, 'dentist')).count(), 0, 'of the other nothing was said')
  t.match((await client.get('/v1/memory/list')).body.items, [{}, { feedback: 'outdated' }])
  await look(t, page, 'feedback')

  await page.reload()
  await settled(page)
  await toldNoMore(row).waitFor()
  await press(row, /^Feedback: /)
  const dialog = page.getByRole('dialog', { name: 'Is it right?' })
  t.equal(await dialog.getByLabel('This memory').inputValue(), 'outdated', 'as it was said')
  await look(t, page, 'feedback-dialog')
  await press(dialog, 'Cancel')
  await toldNoMore(row).waitFor()
  await say(page, 'My cat is called Ada.', 'It is right')
  await toldNoMore(row).waitFor({ state: 'detached' })
  t.match(await find(), ['My cat is called Ada.'])
})

test('feedback is given where a memory was found, and to all of the same text', async (t, {
  open,
}) => {
  const { key, client, find } = await buildVault()
  await ingestTexts(client, ['My cat is called Ada.'])
  const page = await open(key, 'search')
  await page.getByLabel('Question').fill('What is my cat called?')
  await press(page, 'Search', { exact: true })
  const found = rowOf(page, 'called Ada')
  await found.first().waitFor()
  const count = await found.count()
  await press(found.first(), /^Feedback: /)
  const dialog = page.getByRole('dialog', { name: 'Is it right?' })
  t.match(await dialog.innerText(), /with all memories of the same text/)
  await dialog.getByLabel('This memory').selectOption('It is not mine')
  await press(dialog, 'Save')
  await dialog.waitFor({ state: 'detached' })
  t.equal(await toldNoMore(found).count(), count)
  t.notMatch((await find()).join(), 'Ada')
})

test('a failure stays in the dialog, and a key that reads gives none', async (t, {
  page,
  open,
}) => {
  const { key, client } = await buildVault()
  await open(key, 'timeline')
  const { items } = (await client.get('/v1/memory/list')).body
  const ids = (items as { memory_id: string; text: string }[])
    .filter(({ text }) => text.includes('Ada'))
    .map(({ memory_id: id }) => id)
  await client.post('/v1/memory/delete-ids', { ids })
  await press(rowOf(page, 'called Ada'), /^Feedback: /)
  const dialog = page.getByRole('dialog', { name: 'Is it right?' })
  await press(dialog, 'Save')
  await dialog.getByRole('alert').waitFor()
  await press(dialog, 'Cancel')
  t.equal(await toldNoMore(rowOf(page, 'called Ada')).count(), 0)
  await press(page, 'Sign out')
  await open(`${key}:read`, 'timeline')
  await rowOf(page, 'dentist').waitFor()
  t.equal(await page.getByRole('button', { name: /^Lineage/ }).count(), 1)
  t.equal(await page.getByRole('button', { name: /^Feedback/ }).count(), 0)
})
