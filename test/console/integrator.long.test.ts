import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const { key, api, test } = await startConsole(t)
const run = promisify(execFile)

test('an integrator: from the reference to a call and what was recalled in it', async (t, {
  page,
  open,
}) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.goto('/docs')
  await page.locator('.operation:visible').first().waitFor()
  t.match(await page.locator('.operation:visible').allInnerTexts(), [
    /chat.completions|ingest|search|prepare/,
  ])
  await page.goto('/guides?q=prepare')
  await page
    .getByRole('link', { name: /prepare|Memory/ })
    .first()
    .waitFor()

  await open(key, 'connect')
  await page.getByRole('link', { name: 'Any program' }).click()
  await press(page, 'Make a key for Any program')
  const pasted = async (name: string): Promise<string> => {
    await press(page, `Copy with the key: ${name}`)
    const command = await page.evaluate(() => navigator.clipboard.readText())
    const { stdout } = await run('sh', ['-c', command.replace('curl', 'curl -s')])
    return stdout
  }
  t.match(await pasted('Store what was said'), /"operation_id"/)
  await page.getByText('Got it: Any program has called.').waitFor()
  const stored = async () => (await api.get('/v1/memory/stats')).body.memories === 1
  await waitUntil('it is stored', stored)
  t.match(await pasted('Ask for what belongs into the prompt'), /My cat is called Ada/)

  await visit(page, 'traces')
  const calls = page.locator('main')
  await calls.getByText('What is my cat called?').first().waitFor()
  await calls
    .getByRole('link', { name: /What is my cat called/ })
    .first()
    .click()
  await settled(page)
  t.match(await calls.innerText(), /My cat is called Ada\./)
})
