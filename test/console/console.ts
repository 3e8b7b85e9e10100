import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { noBrowser, openTab, signIn, visit, type Watched } from '#test/console/browser.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

export type ConsoleTab = Watched & {
  /** Signs in with a credential, and goes to a page of the console. */
  open(key: string, address?: string): Promise<Page>
}

type ConsoleTest = (t: Test, tab: ConsoleTab) => Promise<unknown>

/** A service with all workers, a key of an empty vault, and tests of its console. */
export async function startConsole(t: Test, env: Record<string, string> = {}) {
  const backend = await createTestBackend(t, { env })
  await startJobWorkers(backend)
  const key = await buildKey(backend)
  const api = await startTestApi(t, backend, key)
  return { backend, key, api, base: api.base, ...consoleTests(t, api.base) }
}

/**
 * Tests of the console at an address. Each fails for an error of a script or of the console, for a violation of the
 * policy, and for a request to another host.
 */
export function consoleTests(t: Test, base: string) {
  let tabOfStory: ConsoleTab | undefined
  const open = async (t: Test): Promise<ConsoleTab> => {
    const tab = await openTab(t, base)
    const open = async (key: string, address?: string): Promise<Page> => {
      await signIn(tab.page, key)
      if (address) await visit(tab.page, address)
      return tab.page
    }
    return { ...tab, open }
  }
  const run = async (t: Test, tab: ConsoleTab, test: ConsoleTest): Promise<void> => {
    await test(t, tab)
    t.same([tab.faults, tab.strangers], [[], []], 'no fault, and no request to anybody else')
  }
  return {
    /** A test in a tab of its own. */
    test: (name: string, test: ConsoleTest) =>
      t.test(name, { skip: noBrowser }, async t => run(t, await open(t), test)),
    /** A test that goes on in the tab of the one before it. */
    story: (name: string, test: ConsoleTest) =>
      t.test(name, { skip: noBrowser }, async child =>
        run(child, (tabOfStory ??= await open(t)), test),
      ),
  }
}
