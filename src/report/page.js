// What a reader does with the page: sort and filter tables, see code in colours, copy it. All of it can be read without.
(function () {
  'use strict';
  // Numbers by data-sort where a cell has it, else text as people order it.
  function key(row, column) {
    const cell = row.cells[Math.min(column, row.cells.length - 1)];
    return cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
  }
  function sort(table, column, down) {
    const body = table.tBodies[0], sign = down ? -1 : 1;
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    rows.sort(([a], [b]) => sign * (typeof a === 'number' && typeof b === 'number' ? a - b
      : String(a).localeCompare(String(b), undefined, {numeric: true})));
    rows.forEach(([, row]) => body.append(row));
    [...table.tHead.rows[0].cells].forEach((head, i) => head.setAttribute('aria-sort', i !== column ? 'none' : down ? 'descending' : 'ascending'));
  }
  function filter(table, text, count) {
    const words = text.toLowerCase().split(/\s+/), rows = [...table.tBodies[0].rows];
    rows.forEach((row) => { const all = row.textContent.toLowerCase(); row.hidden = !words.every((word) => all.includes(word)); });
    count.textContent = rows.filter((row) => !row.hidden).length + ' of ' + rows.length;
  }
  document.querySelectorAll('table.sortable').forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const button = Object.assign(document.createElement('button'), {type: 'button', textContent: head.textContent});
      button.addEventListener('click', () => {
        const order = head.getAttribute('aria-sort');
        const numbers = [...table.tBodies[0].rows].some((row) => row.cells[i] && row.cells[i].dataset.sort !== undefined);
        sort(table, i, order === 'descending' ? false : order === 'ascending' ? true : numbers);
      });
      head.replaceChildren(button);
    });
    const input = Object.assign(document.createElement('input'), {type: 'search', placeholder: 'words of a row: task, author, remark'});
    const count = document.createElement('output'), line = document.createElement('label');
    line.className = 'filter';
    line.append('filter ', input, ' ', count);
    input.addEventListener('input', () => filter(table, input.value, count));
    table.before(line);
    filter(table, '', count);
  });

  const token = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/|^[ \t]*#(?!\s*(?:include|define|pragma|if|ifdef|ifndef|else|elif|endif|undef)\b)[^\n]*)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(^[ \t]*#\w+|\b(?:__\w+__|auto|bool|break|case|char|class|const|constexpr|continue|def|do|double|else|extern|false|float|for|from|half|if|import|in|inline|int|long|namespace|None|not|return|short|static|struct|switch|template|true|typename|unsigned|using|void|while)\b)|(\b(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)[fuUlL]*)/gm;
  const kinds = ['comment', 'string', 'word', 'number'];
  function colour(pre) {
    const text = pre.textContent, parts = [];
    let at = 0;
    for (const match of text.matchAll(token)) {
      parts.push(text.slice(at, match.index), Object.assign(document.createElement('span'), {className: 'of-' + kinds[match.slice(1).findIndex((part) => part !== undefined)], textContent: match[0]}));
      at = match.index + match[0].length;
    }
    pre.replaceChildren(...parts, text.slice(at));
  }
  async function copy(button, pre) {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = 'copied';
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = 'selected: copy it with the keyboard';
    }
  }
  // When it is first opened: a page may hold hundreds of programs.
  document.querySelectorAll('details.kernel').forEach((details) => details.addEventListener('toggle', () => {
    details.querySelectorAll('.pair figure').forEach((figure) => {
      const pre = figure.querySelector('pre'), button = Object.assign(document.createElement('button'), {type: 'button', textContent: 'copy'});
      colour(pre);
      button.addEventListener('click', () => copy(button, pre));
      figure.querySelector('figcaption').append(' ', button);
    });
  }, {once: true}));
  function open() {
    const details = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (details instanceof HTMLDetailsElement) { details.open = true; details.scrollIntoView(); }
  }
  addEventListener('hashchange', open);
  open();
  document.body.dataset.page = 'ready';
})();
