/// <reference lib="dom" />
/** Whether the browser copies by itself: a page without https, but for localhost, copies what is selected in it. */
export const hasClipboard = 'clipboard' in navigator

/** Copies a text. @returns whether the browser did */
export const writeClipboard = async (text: string): Promise<boolean> =>
  hasClipboard
    ? await navigator.clipboard.writeText(text).then(
        () => true,
        () => false,
      )
    : copySelected(text)

/** Behind an open dialog nothing can be selected. */
function copySelected(text: string): boolean {
  const before = document.activeElement
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'unseen'
  ;(document.querySelector('dialog[open]') ?? document.body).append(field)
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  if (before instanceof HTMLElement) before.focus()
  return isCopied
}
