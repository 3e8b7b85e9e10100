import { chromium } from 'playwright-core'
import { readConversation } from '#scripts/clients/demo/conversation.ts'
import { startTemporaryService } from '#scripts/clients/demo/service.ts'
import { storeSitting, waitUntilStored, type StoredSitting } from '#scripts/clients/demo/story.ts'
import { parseOptions } from '#scripts/command-line.ts'
import { makeLoginLink } from '#scripts/login-link.ts'

const help = `Usage: npm run picture -- [options]

Takes the picture on the project's first page: starts a service in a temporary folder, stores the
conversation of the demo there, and asks about it in the playground of the console with Chromium
(CHROMIUM, or /usr/bin/chromium).

  --out <file>  where the picture goes (default: api/console/picture.png)
  --help        this text
`

const question = 'What is the name of Tinta’s vet?'
const size = { width: 1200, height: 700 }

const { out } = parseOptions(help, {
  out: { type: 'string', default: 'api/console/picture.png' },
})
const abortController = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => abortController.abort())

const service = await startTemporaryService(abortController.signal)
try {
  const told: StoredSitting[] = []
  for (const sitting of readConversation(new Date()).sittings)
    told.push(await storeSitting(service.call, sitting))
  await waitUntilStored(service.call, told)
  await takePicture((await makeLoginLink(service))!)
} finally {
  await service.stop()
}

/** @param link signs in at the console, once */
async function takePicture(link: string): Promise<void> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  })
  try {
    const page = await browser.newPage({ viewport: size, colorScheme: 'light' })
    await page.goto(link)
    await page.getByRole('button', { name: 'Open this vault' }).click()
    await page.getByRole('link', { name: 'Playground' }).click()
    await page.getByLabel('Message').fill(question)
    await page.keyboard.press('Enter')
    await page.getByText('Your message is stored.').waitFor()
    await page.locator('h1').click()
    await page.screenshot({ path: out })
  } finally {
    await browser.close()
  }
}
