/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import { writeClipboard } from '#api/console/app/parts/clipboard.ts'

// A guide is whole without this: its blocks of code get a button each, and the page the theme of the console.
const theme = localStorage.getItem('memory-vault.theme')
if (theme === 'light' || theme === 'dark') document.documentElement.style.colorScheme = theme

for (const code of document.querySelectorAll('.code-frame > pre')) {
  const button = document.createElement('button')
  Object.assign(button, { type: 'button', className: 'button', textContent: 'Copy' })
  const copy = async (): Promise<void> => {
    button.textContent = (await writeClipboard(code.textContent)) ? 'Copied' : 'Not allowed'
  }
  button.addEventListener('click', () => void copy())
  code.after(button)
}
