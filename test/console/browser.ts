/// <reference lib="dom" />
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium, type Browser, type Locator, type Page, type Request } from 'playwright-core'
import type { Test } from 'tap'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'

/** Why tests in a browser cannot run here; false when they can. */
export const noBrowser: string | false =
  !existsSync(executablePath) && `there is no browser at ${executablePath}`

/** What a page did that no page of the service may do. */
export type Watched = {
  page: Page
  /** Errors of scripts and of the console, violations of the policy among them. */
  faults: string[]
  /** Addresses of other hosts that were asked. */
  strangers: string[]
  /** Bytes of bodies as they came over the wire. */
  bytes: () => Promise<number>
}

/** The browser of this process; it ends with it. */
let browser: Promise<Browser> | undefined

const wide = { width: 1280, height: 900 }
const widest = { width: 2560, height: 1440 }
export const phone = { width: 360, height: 740 }

/** A page at this name is no secure context, as on any address of a local network without https. */
export const plainHost = 'vault.test'
const hostRule = `--host-resolver-rules=MAP ${plainHost} 127.0.0.1`

/** A tab with nothing kept from others, closed at the end of the test. */
export async function openTab(t: Test, base: string): Promise<Watched> {
  browser ??= chromium.launch({
    executablePath,
    args: ['--no-sandbox', hostRule],
    timeout: 120_000,
  })
  const context = await (
    await browser
  ).newContext({
    viewport: wide,
    baseURL: base,
    acceptDownloads: true,
    reducedMotion: 'reduce',
  })
  t.teardown(() => context.close())
  const page = await context.newPage()
  // It only tells a hang.
  page.setDefaultTimeout(180_000)
  const faults: string[] = []
  const strangers: string[] = []
  const sizes: Promise<number>[] = []
  const requests = new Set<Request>()
  underWay.set(page, requests)
  page.on('request', request => requests.add(request))
  page.on('requestfinished', request => requests.delete(request))
  page.on('requestfailed', request => requests.delete(request))
  page.on('pageerror', error => faults.push(error.message))
  page.on('console', message => {
    // A refusal is for the page to show; the browser tells of it as well.
    const told = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !told) faults.push(message.text())
  })
  page.on('request', request => {
    const { origin, protocol } = new URL(request.url())
    if (/^https?:$/.test(protocol) && origin !== new URL(base).origin) strangers.push(request.url())
  })
  page.on('requestfinished', request => {
    // A closed tab has no sizes, and most tests ask for none.
    const size = request.sizes().then(({ responseBodySize }) => responseBodySize)
    sizes.push(size.catch(() => 0))
  })
  const bytes = async (): Promise<number> => (await Promise.all(sizes)).reduce((a, b) => a + b, 0)
  return { page, faults, strangers, bytes }
}

/** Opens the console with a credential, as a person does. */
export async function signIn(page: Page, key: string, address = '/console'): Promise<void> {
  await page.goto(address)
  await page.getByLabel('Key', { exact: false }).first().fill(key)
  await page.getByRole('button', { name: 'Open' }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
}

/** Presses a button by its name. */
export const press = (
  within: Page | Locator,
  name: string | RegExp,
  options: { exact?: boolean } = {},
): Promise<void> => within.getByRole('button', { name, ...options }).click()

/** Goes to a page of the console, and waits until it has what it shows. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.evaluate(hash => (location.hash = hash), `#/${address}`)
  await page.locator(`[aria-current="page"][href="#/${address}"]`).waitFor({ state: 'attached' })
  await settled(page)
}

/** Requests of a tab that have no answer yet. */
const underWay = new WeakMap<Page, Set<Request>>()

/** Resolves when nothing is waited for any more, neither by the page nor on the wire. */
export async function settled(page: Page): Promise<void> {
  const requests = underWay.get(page)!
  await waitUntil('the page is settled', async () => {
    // What was just asked for is on its way after two frames.
    const waits = await page.evaluate(async () => {
      for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame)
      return document.querySelector('.waiting') !== null
    })
    return !waits && requests.size === 0
  })
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What is in the way of people who cannot see the page, or not well: a line each. */
export async function barriersOf(page: Page): Promise<string[]> {
  // Evaluated from outside the page, so that its policy can stay as it is; once a document.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe)
  return page.evaluate(async () => {
    const { violations } = await (window as unknown as AxeWindow).axe.run(document, {
      resultTypes: ['violations'],
    })
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target }) => `${id}: ${target.join(' ')}`),
    )
  })
}

type AxeWindow = {
  axe: {
    run(
      of: Document,
      options: { resultTypes: string[] },
    ): Promise<{
      violations: { id: string; nodes: { target: string[] }[] }[]
    }>
  }
}

/** How far a page is wider than its window, in pixels. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

/** Controls that end beyond the edge of the window, outside of what scrolls by itself: a line each. */
const cutOff = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll('main :is(a, button, input, select, textarea)')]
      .filter(element => element.checkVisibility() && !element.closest('.table, pre, .page-tabs'))
      .filter(element => {
        const { left, right } = element.getBoundingClientRect()
        return left < -1 || right > document.documentElement.clientWidth + 1
      })
      .map(element => `${element.tagName} ${element.textContent?.trim().slice(0, 60)}`),
  )

/** Words of rows that have no room: a line each. */
const squeezed = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll('main .line-main > :is(a, b, .line-text)')]
      .filter(element => element.checkVisibility() && element.textContent !== '')
      .filter(element => element.getBoundingClientRect().width < 24)
      .map(element => element.textContent.slice(0, 60)),
  )

/** Selects that are narrower than the words of their choice: a line each. */
const cutSelects = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const pen = document.createElement('canvas').getContext('2d')!
    return [...document.querySelectorAll('main select')]
      .filter(select => select.checkVisibility())
      .flatMap(select => {
        const { font, paddingLeft, paddingRight } = getComputedStyle(select)
        pen.font = font
        const words = (select as HTMLSelectElement).selectedOptions[0]?.textContent?.trim() ?? ''
        const arrow = 20
        const needed =
          pen.measureText(words).width + parseFloat(paddingLeft) + parseFloat(paddingRight) + arrow
        return needed > select.clientWidth ? [`${words}: ${select.clientWidth} of ${needed}`] : []
      })
  })

/** Texts of a page that touch the word before or after them without a space: a line each. */
const gluedWords = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const isInline = (node: Node): boolean =>
      node instanceof Text ||
      (node instanceof HTMLElement && getComputedStyle(node).display.startsWith('inline'))
    const found: string[] = []
    const texts = document.createTreeWalker(document.querySelector('main')!, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) {
      const node = texts.currentNode
      const parent = node.parentElement!
      // A marked word stands where its text has it.
      if (parent.closest('pre, svg')) continue
      // Parts of a flex box or a grid have a gap, but for texts without an element between them: they are one part.
      const isBox = /flex|grid/.test(getComputedStyle(parent).display)
      for (const [before, after] of [
        [node.previousSibling, node],
        [node, node.nextSibling],
      ]) {
        if (!before || !after || !isInline(before) || !isInline(after)) continue
        if (isBox && !(before instanceof Text && after instanceof Text)) continue
        const pair = [before.textContent!.slice(-20), after.textContent!.slice(0, 20)]
        if (/[\p{L}\p{N}.,;:]$/u.test(pair[0]!) && /^[\p{L}\p{N}]/u.test(pair[1]!)) {
          found.push(pair.join('|'))
        }
      }
    }
    return found
  })

/**
 * Looks at a page once it is there, in both themes, from a phone to 2560 px: no barrier, no scrolling sideways.
 * Leaves it light and wide.
 */
export async function look(t: Test, page: Page, name: string): Promise<void> {
  // An empty page has no barriers.
  await page.getByRole('heading', { level: 1 }).first().waitFor()
  for (const colorScheme of ['dark', 'light'] as const) {
    const of = `${colorScheme}-${name}`
    await page.emulateMedia({ colorScheme })
    await settled(page)
    t.same(await barriersOf(page), [], of)
    t.same(await gluedWords(page), [], `${of}: words have spaces between them`)
    t.same(await cutSelects(page), [], `${of}: selects show their choice`)
    await picture(page, of)
    await page.setViewportSize(phone)
    t.equal(await overflowOf(page), 0, `${of} on a phone`)
    t.same(await cutOff(page), [], `${of} on a phone: everything can be reached`)
    t.same(await squeezed(page), [], `${of} on a phone: each row can be read`)
    t.same(await barriersOf(page), [], `${of} on a phone`)
    await picture(page, `${of}-narrow`)
    await page.setViewportSize(widest)
    t.equal(await overflowOf(page), 0, `${of} at 2560 px`)
    t.same(await barriersOf(page), [], `${of} at 2560 px`)
    await picture(page, `${of}-widest`)
    await page.setViewportSize(wide)
  }
}

/** Keeps a picture where `SCREENSHOTS` says, for people to look at. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true })
}
