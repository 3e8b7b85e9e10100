import type { VaultClient } from '../client.ts'
import { SessionItems } from './session-items.ts'

/**
 * A session of the OpenAI Agents SDK (`run(agent, input, { session })`) in a session of the vault: its history is
 * read back as it was added, and `prepare` and `search` with the same session id find what it says. Storing
 * needs a card on file, as uploads do.
 */
export class VaultSession<Item extends object = object> {
  readonly #sessionId: string
  readonly #items: SessionItems

  constructor(vault: VaultClient, sessionId: string) {
    this.#sessionId = sessionId
    this.#items = new SessionItems(vault, sessionId, 'openai-agents')
  }

  // oxlint-disable-next-line typescript/require-await -- the interface asks for a promise
  async getSessionId(): Promise<string> {
    return this.#sessionId
  }

  /** The items, oldest first; with a limit the newest of them. */
  async getItems(limit?: number): Promise<Item[]> {
    if (limit !== undefined && limit <= 0) return []
    return (await this.#items.read(limit)).map(({ item }) => item as Item)
  }

  async addItems(items: Item[]): Promise<void> {
    await this.#items.add(items)
  }

  /** Removes the newest item. */
  async popItem(): Promise<Item | undefined> {
    const [newest] = await this.#items.read(1)
    if (!newest) return undefined
    await this.#items.remove([newest])
    return newest.item as Item
  }

  async clearSession(): Promise<void> {
    await this.#items.clear()
  }
}
