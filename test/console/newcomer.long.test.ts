import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { noBrowser, openTab, press, visit } from '#test/console/browser.ts'
import { chatgptConversation } from '#test/support/samples/foreign-exports.ts'
import { startService } from '#test/support/start/npm-start.ts'

t.test(
  'a newcomer: from the link in the terminal to what is remembered',
  { skip: noBrowser },
  async t => {
    const dataDir = mkdtempSync(join(tmpdir(), 'newcomer-'))
    const { output, child, exit, client } = await startService(t, dataDir)
    t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
    const [link] = /http:\S+\/console#\/open\/\S+/.exec(output()) ?? []
    t.ok(link, 'the terminal prints a link that signs in')
    const { page, faults, strangers } = await openTab(t, new URL(link!).origin)

    await page.goto(link!)
    await press(page, 'Open this vault')
    await page.getByText('Nothing is remembered yet').waitFor()
    t.equal(await page.locator('.steps .done').count(), 1, 'they have a key')

    await page.getByRole('link', { name: 'Try it here' }).click()
    const say = async (text: string): Promise<void> => {
      await page.getByLabel('Message').fill(text)
      await press(page, 'Send')
      await page.locator('.memory-text').getByText(text, { exact: true }).waitFor()
    }
    await say('My cat is called Ada and she hates thunder.')
    await press(page, 'New conversation')
    await say('What is my cat called?')
    await page.getByText(/Recalled: 1 memory/).waitFor()
    t.match(await page.locator('aside li').innerText(), /called Ada/)

    await visit(page, 'overview')
    await page.locator('.latest').getByText('My cat is called Ada').first().waitFor()
    await visit(page, 'search')
    await page.getByLabel('Question').fill('which animal fears storms')
    await page.keyboard.press('Enter')
    await page.locator('article').getByText(/Ada/).first().waitFor()
    t.match(await page.locator('article').first().innerText(), /hates thunder/)

    await visit(page, 'timeline')
    await press(page, 'Add a memory')
    await page.getByRole('dialog').getByLabel('Text').fill('The dentist is on Tuesday at nine.')
    await press(page.getByRole('dialog'), 'Store')
    await page.locator('article').getByText('The dentist is on Tuesday').waitFor()

    await visit(page, 'files')
    const conversations = join(dataDir, 'conversations.json')
    writeFileSync(conversations, JSON.stringify([chatgptConversation()]))
    await page.getByLabel('File', { exact: true }).setInputFiles(conversations)
    await press(page, /^Store \d+ memories/)
    await page.getByText(/\d+ stored, 0 already there, 0 faulty/).waitFor()
    await visit(page, 'search')
    await page.getByLabel('Question').fill('What shall I call my kitten?')
    await page.keyboard.press('Enter')
    await page.locator('article').getByText('Ada suits her').waitFor()
    t.ok((await client.get('/v1/memory/stats')).body.memories > 3)
    t.same([faults, strangers], [[], []])
    child.kill('SIGTERM')
    t.equal(await exit, 0, output())
  },
)
