import t from 'tap'
import type { Page } from 'playwright-core'
import { look, press } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { pdfOf } from '#test/support/start/documents.ts'

const { backend, base, test } = await startConsole(t)

/** Drops files where documents are dropped, as a browser does. */
async function drop(page: Page, files: Readonly<Record<string, Buffer | string>>): Promise<void> {
  const sent = Object.entries(files).map(([name, content]) => ({
    name,
    bytes: [...Buffer.from(content)],
  }))
  const dataTransfer = await page.evaluateHandle(list => {
    const transfer = new DataTransfer()
    for (const { name, bytes } of list) transfer.items.add(new File([new Uint8Array(bytes)], name))
    return transfer
  }, sent)
  await page
    .locator('.drop')
    .filter({ hasText: 'Their text is stored at once' })
    .dispatchEvent('drop', { dataTransfer })
}

test('documents are dropped, found by a question, replaced and removed', async (t, {
  page,
  open,
}) => {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const found = async (): Promise<string[]> =>
    (await client.post('/v1/memory/search', { query: 'deposit', limit: 5 })).body.memories.map(
      ({ content }: { content: string }) => content,
    )
  await open(key, 'files')
  await page.getByText('No documents').waitFor()
  const lease = pdfOf([['The lease runs for two years.'], ['The deposit is 900 euros.'], []])
  await drop(page, { 'lease.pdf': lease, 'keys.md': 'There are three keys.' })
  await page
    .getByText('lease.pdf: 2 stored, left out: pages without text, such as scans: 1')
    .waitFor()
  await page.getByText('keys.md: 1 stored').waitFor()
  await page.getByText('2 memories of 2 pages').waitFor()
  await look(t, page, 'documents')
  t.match(await found(), ['The deposit is 900 euros.'])

  const newer = pdfOf([['The lease runs for two years.'], ['The deposit is 950 euros.']])
  await drop(page, { 'lease.pdf': newer })
  await page
    .getByText('lease.pdf: 1 stored, 1 already there, 1 of an earlier version removed')
    .waitFor()
  t.match(await found(), ['The deposit is 950 euros.'])

  await drop(page, { 'scan.pdf': pdfOf([[]]) })
  await page.getByText(/scan\.pdf has no text/).waitFor()

  await page.getByRole('button', { name: /Remove.*lease\.pdf/ }).click()
  await page.getByText('Remove lease.pdf?').waitFor()
  await press(page.getByRole('dialog'), 'Remove')
  await page.getByText('2 memories of 2 pages').waitFor({ state: 'detached' })
  t.same((await client.get('/v1/memory/files')).body.items.length, 1)
})
