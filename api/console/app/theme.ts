export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const storageKey = 'memory-vault.theme'

export const storedTheme = (): Theme => {
  const stored = localStorage.getItem(storageKey)
  return themes.find(name => name === stored) ?? 'auto'
}

/** Applies a theme and stores it in the browser; `auto` follows the system. */
export function applyTheme(name: Theme): void {
  localStorage.setItem(storageKey, name)
  if (name === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = name
}
