import {
  currentCredential,
  lastTabKey,
  onCredential,
  setCredential,
  type Credential,
} from '#api/console/app/credential.ts'

/** Tabs of one browser and one origin. Credentials go from memory to memory: no message is stored. */
const channel = new BroadcastChannel('memory-vault')

type Message =
  | { question: string }
  /** To the tab that asked the question. */
  | { answer: string; from: string; credential: Credential }

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a channel, not a window
const send = (message: Message): void => channel.postMessage(message)

const makeId = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-')
const ownId = makeId()

/** How long a new tab waits for the tab that was in use last, before it takes the credential of another. */
const patienceMs = 150

/**
 * Asks the other tabs for a credential, and signs this one in with it.
 *
 * @returns when that is done, or no tab has answered in time; a late answer still signs in
 */
export function askOtherTabs(): Promise<void> {
  const lastTab = localStorage.getItem(lastTabKey)
  if (currentCredential() || lastTab === null) return Promise.resolve()
  const question = makeId()
  return new Promise(resolve => {
    let found: Credential | undefined
    let isLate = false
    const settle = (): void => {
      isLate = true
      if (found) channel.removeEventListener('message', take)
      // A sign-out in the meantime wins.
      const isOpen = localStorage.getItem(lastTabKey) !== null
      if (found && isOpen && !currentCredential()) setCredential(found)
      resolve()
    }
    const take = ({ data }: MessageEvent<Message>): void => {
      if (!('answer' in data) || data.answer !== question) return
      const isLast = data.from === lastTab
      if (isLast || !found) found = data.credential
      if (isLast || isLate) settle()
    }
    channel.addEventListener('message', take)
    setTimeout(settle, patienceMs)
    send({ question })
  })
}

/** Answers new tabs from now on. */
export function answerOtherTabs(): void {
  channel.addEventListener('message', ({ data }: MessageEvent<Message>) => {
    const credential = currentCredential()
    if (!('question' in data) || !credential || credential.alone) return
    send({ answer: data.question, from: ownId, credential })
  })
  const noteUse = (): void => {
    const credential = currentCredential()
    if (credential && !credential.alone) localStorage.setItem(lastTabKey, ownId)
  }
  for (const event of ['focus', 'pointerdown', 'keydown']) addEventListener(event, noteUse)
  onCredential(noteUse)
  noteUse()
}
