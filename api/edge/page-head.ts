import { html, Html } from '#api/edge/html.ts'

/** The mark as a data address; its name space is escaped, since the page names no other host. */
const favicon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect x="1" y="1" width="22" height="22" rx="6" fill="#0b6b70"/><g fill="none" stroke="#fff" stroke-width="2"><circle cx="12" cy="12" r="6"/><path d="M12 3.5v4M12 16.5v4M3.5 12h4M16.5 12h4"/></g><circle cx="12" cy="12" r="2" fill="#fff"/></svg>',
)}`

/** What the head of each page begins with. */
export const pageHead = (title: string): Html =>
  html`<meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${title}</title>
    <link rel="icon" href="${favicon}" />`

/** The mark of the product, for pages that no module draws. */
export const mark = new Html(
  '<svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><rect x="1" y="1" width="22" height="22" rx="6" fill="var(--accent)"></rect><g fill="none" stroke="var(--accent-ink)" stroke-width="2"><circle cx="12" cy="12" r="6"></circle><path d="M12 3.5v4M12 16.5v4M3.5 12h4M16.5 12h4"></path></g><circle cx="12" cy="12" r="2" fill="var(--accent-ink)"></circle></svg>',
)

const openPages = { '/guides': 'Guides', '/docs': 'API reference', '/console': 'Console' }

/** The bar above the pages that need no key. */
export const pageBar = (here: keyof typeof openPages): Html =>
  html`<header class="bar">
    <a class="brand" href="${here}">${mark} Memory Vault</a>
    <nav class="bar-pages" aria-label="Pages">
      ${Object.entries(openPages).map(
        ([href, name]) =>
          html`<a href="${href}" aria-current="${href === here ? 'page' : 'false'}">${name}</a> `,
      )}
    </nav>
  </header>`
