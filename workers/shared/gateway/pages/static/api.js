"use strict";

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  docExpansion: "none",
  tagsSorter: "alpha",
  validatorUrl: null,
});
